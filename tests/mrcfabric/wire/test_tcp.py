"""TCP segments: written and read, a vector by hand, options, and bytes that are no segment."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import WireError
from mrcfabric.wire import local, tcp
from mrcfabric.wire.tcp import ACK, PSH, SYN, Segment

A, B = bytes.fromhex("fe80" + "00" * 13 + "01"), bytes.fromhex("fe80" + "00" * 13 + "02")


def test_a_syn_by_hand() -> None:
    packet = tcp.encode(A, B, Segment(49152, 179, 1, 0, SYN, 65535, 1220), 1)
    body = packet[40:]
    # Ports, numbers, offset 6 words and SYN, window; checksum; no urgent data; MSS 1220.
    assert body[:16].hex() == "c00000b300000001000000006002ffff"
    assert body[18:].hex() == "0000020404c4"
    # fe80 + 1 + fe80 + 2 + 24 + 6, then the words of the segment, with the carries brought around.
    words = [0xFE80, 1, 0xFE80, 2, 24, 6, 0xC000, 0xB3, 0, 1, 0, 0, 0x6002, 0xFFFF, 0, 0x0204, 0x04C4]
    total = sum(words)
    assert int.from_bytes(body[16:18], "big") == 0xFFFF ^ ((total & 0xFFFF) + (total >> 16))
    assert packet[7] == 1


@given(
    st.tuples(*[st.integers(0, 0xFFFF)] * 2), st.tuples(*[st.integers(0, 0xFFFF_FFFF)] * 2), st.integers(0, 0x3F),
    st.integers(0, 0xFFFF), st.sampled_from((0, 536, 1220, 65535)), st.binary(max_size=50),
)  # fmt: skip
def test_a_segment_is_read_as_it_was_written(
    ports: tuple[int, int], numbers: tuple[int, int], flags: int, window: int, mss: int, payload: bytes
) -> None:
    segment = Segment(*ports, *numbers, flags, window, mss, payload)
    packet = tcp.encode(A, B, segment, 1)
    assert tcp.parse(local.parse(packet)) == segment
    packet[-1] ^= 1
    with pytest.raises(WireError) as caught:
        tcp.parse(local.parse(packet))
    assert caught.value.reason in (local.BAD_CHECKSUM, tcp.BAD_TCP)


def test_length_in_sequence_numbers() -> None:
    assert [Segment(1, 2, 0, 0, flags, payload=b"abc").length for flags in (ACK, SYN, tcp.FIN | PSH)] == [3, 4, 4]


def with_options(options: bytes) -> local.Local:
    head = bytes.fromhex("c00000b300000001000000000000ffff00000000")
    body = bytearray(head + options)
    body[12] = (len(body) // 4) << 4
    body[13] = SYN
    body[16:18] = local.checksum(A, B, 6, body).to_bytes(2, "big")
    return local.Local(A, B, 6, 1, bytes(body))


@pytest.mark.parametrize(
    ("options", "mss"),
    [("0101020405b40000", 1460), ("0303070000000000", 0), ("00020405b4000000", 0), ("0303080101020405b4000000", 1460)],
)
def test_other_options_are_passed_over(options: str, mss: int) -> None:
    assert tcp.parse(with_options(bytes.fromhex(options))).mss == mss


@pytest.mark.parametrize("options", ["02000000", "03ff0000", "01010103"])
def test_options_that_are_cut_off(options: str) -> None:
    with pytest.raises(WireError, match=tcp.BAD_TCP):
        tcp.parse(with_options(bytes.fromhex(options)))


@given(st.binary(max_size=60), st.sampled_from((6, 17)))
def test_any_bytes_raise_the_wires_error_or_none(body: bytes, kind: int) -> None:
    with suppress(WireError):
        tcp.parse(local.Local(A, B, kind, 1, body))
