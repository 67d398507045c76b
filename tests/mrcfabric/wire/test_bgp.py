"""BGP's messages but UPDATE: vectors by hand, streams in pieces, and messages that break the protocol."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire import bgp
from mrcfabric.wire.bgp import BgpError, Notification, Open

MARKER = "ff" * 16


def test_a_keepalive_and_a_notification_by_hand() -> None:
    assert bgp.frame(bgp.KEEPALIVE).hex() == MARKER + "001304"
    expired = bgp.encode_notification(Notification(bgp.HOLD_EXPIRED, 0))
    assert expired.hex() == MARKER + "0015030400"
    assert bgp.parse_notification(expired[19:]) == Notification(4, 0)


def test_an_open_by_hand() -> None:
    said = Open(4_200_000_001, 9, 0x0A000001)
    # Version 4, AS_TRANS, hold 9 s, identifier, then one parameter of capabilities: family 2/1, restart, AS number.
    capabilities = "010400020001400200004104fa56ea01"
    body = "045ba000090a000001120210" + capabilities
    assert bgp.encode_open(said).hex() == MARKER + "002f01" + body
    assert bgp.parse_open(bytes.fromhex(body)) == said


@given(
    st.integers(1, 0xFFFF_FFFF), st.sampled_from((0, 3, 9, 180, 65535)), st.integers(1, 0xFFFF_FFFF), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_an_open_is_read_as_it_was_written(asn: int, hold: int, identifier: int, ipv6: bool, end: bool) -> None:
    said = Open(asn, hold, identifier, ipv6, True, end)
    assert bgp.parse_open(bgp.encode_open(said)[19:]) == said


def test_a_neighbour_may_put_each_capability_into_a_parameter_of_its_own() -> None:
    options = "020601040002000102064104fa56ea0102020200"
    body = bytes.fromhex("045ba000090a000001" + f"{len(options) // 2:02x}" + options)
    assert bgp.parse_open(body) == Open(4_200_000_001, 9, 0x0A000001, end_of_rib=False)


def test_a_speaker_of_two_bytes_alone() -> None:
    found = bgp.parse_open(bytes.fromhex("04fde800b40a00000100"))
    assert found == Open(65_000, 180, 0x0A000001, ipv6=False, four_bytes=False, end_of_rib=False)


@given(st.lists(st.sampled_from((bgp.KEEPALIVE, bgp.OPEN, bgp.NOTIFICATION)), max_size=5), st.data())
def test_messages_come_out_of_a_stream_however_it_is_cut(kinds: list[int], data: st.DataObject) -> None:
    bodies = {bgp.KEEPALIVE: b"", bgp.OPEN: bgp.encode_open(Open(1, 9, 1))[19:], bgp.NOTIFICATION: b"\6\2"}
    whole = b"".join(bgp.frame(kind, bodies[kind]) for kind in kinds)
    stream, found, at = bytearray(), [], 0
    while at < len(whole):
        size = data.draw(st.integers(1, 40))
        stream += whole[at : at + size]
        at += size
        while (message := bgp.take(stream)) is not None:
            found.append(message)
    assert found == [(kind, bodies[kind]) for kind in kinds]
    assert not stream


@pytest.mark.parametrize(
    ("stream", "codes"),
    [
        ("fe" + "ff" * 15 + "001304", (1, 1)),
        (MARKER + "001305", (1, 3)),
        (MARKER + "001300", (1, 3)),
        (MARKER + "001204", (1, 2)),
        (MARKER + "001404", (1, 2)),
        (MARKER + "001c01", (1, 2)),
        (MARKER + "100102", (1, 2)),
        (MARKER + "001403", (1, 2)),
    ],
)
def test_headers_that_break_the_protocol(stream: str, codes: tuple[int, int]) -> None:
    with pytest.raises(BgpError) as caught:
        bgp.take(bytearray.fromhex(stream))
    assert (caught.value.code, caught.value.subcode) == codes
    assert caught.value.reason == f"bgp_{codes[0]}_{codes[1]}"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("03fde800b40a00000100", (2, 1)),
        ("04fde800020a00000100", (2, 6)),
        ("04fde800b40000000000", (2, 3)),
        ("04000000b40a00000100", (2, 2)),
        ("04fde800b40a00000101", (2, 0)),
        ("04fde800b40a000001020100", (2, 4)),
        ("04fde800b40a0000010402020104", (2, 0)),
        ("04fde800b40a0000010502034101ff", (2, 0)),
        ("04fde8", (1, 2)),
    ],
)
def test_opens_that_break_the_protocol(body: str, codes: tuple[int, int]) -> None:
    with pytest.raises(BgpError) as caught:
        bgp.parse_open(bytes.fromhex(body))
    assert (caught.value.code, caught.value.subcode) == codes


@given(st.binary(max_size=60))
def test_any_bytes_raise_the_wires_error_or_none(data: bytes) -> None:
    for reader in (bgp.parse_open, bgp.parse_notification, lambda body: bgp.take(bytearray(body))):
        with suppress(BgpError):
            reader(data)
