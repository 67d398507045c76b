"""The complete parser and emitter."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import WireError
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.data_headers import ImmDt, Meth, Reth, Tseth
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.ipv6 import Ipv6, Srh, Udp
from mrcfabric.wire.layout import NEXT_HEADER_IPV6, NEXT_HEADER_ROUTING
from mrcfabric.wire.packet import Packet, dissect, emit, parse
from mrcfabric.wire.trim import trim
from tests.support.packets import data_packet, one_of_each
from tests.vectors import wire as golden

PACKETS = one_of_each()


def test_a_packet_is_its_layers_in_order() -> None:
    packet = parse(golden.WRITE)
    assert [type(header) for header in packet.headers] == [Ipv6, Ipv6, Udp, Bth, Meth, Tseth, Reth, ImmDt]
    assert packet.payload == b"hello"
    assert packet.outer.destination == golden.CONTAINER
    assert packet.inner.source == golden.SOURCE
    assert packet.get(Reth) == Reth(0x10000FFE, 0xDEADBEEF, 5)
    assert packet.find(Srh) is None


@pytest.mark.parametrize("name", PACKETS)
def test_parse_and_emit_are_inverse(name: str) -> None:
    packet = parse(PACKETS[name])
    copy = Packet(packet.headers, packet.payload)
    assert emit(copy) == PACKETS[name]
    assert copy == packet


@pytest.mark.parametrize("name", PACKETS)
def test_every_truncation_of_every_packet_is_refused_by_name(name: str) -> None:
    packet = PACKETS[name]
    for size in range(len(packet)):
        with pytest.raises(WireError, match="truncated"):
            parse(packet[:size])


def test_a_wrong_sum_is_refused_unless_the_packet_was_trimmed() -> None:
    packet = data_packet(0xC7)
    packet[-1] ^= 1
    with pytest.raises(WireError, match="icrc"):
        parse(packet)
    assert parse(packet, trimmed_ok=True).icrc_good is False


def test_a_trimmed_packet_keeps_its_headers_and_tells_what_is_gone() -> None:
    cut = trim(data_packet(0xC9, bytes(4096), ts=True), 256, Dscp().trimmed)
    packet = parse(cut, trimmed_ok=True)
    assert packet.missing == 128 + 4096 + 4 - 256
    assert len(packet.payload) == 128
    assert packet.icrc is None
    assert packet.icrc_good is None
    with pytest.raises(WireError, match="truncated"):
        parse(cut)


@pytest.mark.spec("RFC 8754", "2")
def test_a_segment_routing_header_is_told_apart() -> None:
    plain = parse(golden.WRITE)
    outer, *rest = plain.headers
    assert isinstance(outer, Ipv6)
    outer.next_header = NEXT_HEADER_ROUTING
    raw = emit(Packet([outer, Srh(NEXT_HEADER_IPV6, segment=golden.CONTAINER), *rest], plain.payload))
    packet = parse(raw)
    assert packet.get(Srh).segment == golden.CONTAINER
    assert packet.outer.payload_length == 124
    assert packet.icrc == plain.icrc
    raw[41] = 4
    with pytest.raises(WireError, match="srh"):
        parse(raw)


@given(data=st.binary(max_size=300), trimmed_ok=st.booleans())
def test_random_bytes_raise_nothing_but_wire_errors(data: bytes, trimmed_ok: bool) -> None:
    assert dissect(data, trimmed_ok=trimmed_ok)[1] is not None
    with pytest.raises(WireError):
        parse(data, trimmed_ok=trimmed_ok)


@given(
    name=st.sampled_from(sorted(PACKETS)),
    changes=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=4),
    size=st.integers(0, 200),
    trimmed_ok=st.booleans(),
)
def test_spoilt_packets_raise_nothing_but_wire_errors(
    name: str, changes: list[tuple[int, int]], size: int, trimmed_ok: bool
) -> None:
    packet = bytearray(PACKETS[name])
    for offset, value in changes:
        packet[offset % len(packet)] = value
    with suppress(WireError):
        parse(memoryview(packet)[:size], trimmed_ok=trimmed_ok)
