"""The segment routing header on its way: put in, read by tools, taken out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.units import Buffer
from mrcfabric.wire import srh
from mrcfabric.wire.describe import describe
from mrcfabric.wire.fastpath import peeker
from mrcfabric.wire.ipv6 import Ipv6, Srh
from mrcfabric.wire.layout import NEXT_HEADER_IPV6, WRITE_ONLY
from mrcfabric.wire.packet import Packet, emit, parse
from mrcfabric.wire.trim import trim
from tests.support.packets import DSCP
from tests.vectors import wire as golden

SEGMENT = bytes.fromhex("fdab0000" + "80050000" * 3)
addresses = st.binary(min_size=16, max_size=16)


def data(outer: bytes, payload: Buffer = b"payload!") -> bytearray:
    template = srh.SrhDataTemplate(golden.SOURCE, golden.DESTINATION, 77, dscp=DSCP)
    return template.build(WRITE_ONLY, 5, 1, 0, 0x1000, 9, len(payload), 0x12345678, outer, payload)


@pytest.mark.spec("RFC 8754", "4.1.1")
@pytest.mark.parametrize(("segment", "left"), [(SEGMENT, 1), (golden.CONTAINER, 0)])
def test_a_segment_is_still_to_come_or_a_copy_of_the_path(segment: bytes, left: int) -> None:
    packet = parse(data(srh.outer_with(golden.CONTAINER, segment)))
    assert packet.outer.destination == golden.CONTAINER
    header = packet.get(Srh)
    assert (header.segment, header.segments_left, header.last_entry) == (segment, left, 0)
    assert packet.payload == b"payload!"


def test_packets_are_what_the_complete_emitter_makes() -> None:
    plain = parse(data(golden.CONTAINER))
    outer, *rest = plain.headers
    assert isinstance(outer, Ipv6)
    outer.next_header = 43
    header = Srh(NEXT_HEADER_IPV6, segments_left=1, segment=SEGMENT)
    assert data(srh.outer_with(golden.CONTAINER, SEGMENT)) == emit(Packet([outer, header, *rest], plain.payload))


def test_probes_take_it_too() -> None:
    template = srh.SrhControlTemplate(golden.SOURCE, golden.DESTINATION, 77, 5, dscp=DSCP)
    packet = parse(template.probe(1, srh.outer_with(golden.CONTAINER, SEGMENT), 3, 0))
    assert packet.get(Srh).segment == SEGMENT
    assert parse(template.probe(1, golden.CONTAINER, 3, 0)).find(Srh) is None


@pytest.mark.spec("RFC 8754", "2")
@given(addresses, st.binary(min_size=1, max_size=40))
def test_taken_out_it_leaves_the_packet_without_it(container: bytes, payload: bytes) -> None:
    packet = data(srh.outer_with(container, container), payload)
    assert srh.follows(packet)
    stripped = srh.strip(packet)
    assert stripped == data(container, payload)
    assert not srh.follows(stripped)


@given(st.binary(max_size=120))
def test_bytes_of_a_stranger_never_raise(raw: bytes) -> None:
    packet = b"\x60\0\0\0\0\x40\x2b\x40" + raw
    assert srh.follows(packet)
    stripped = srh.strip(packet)
    assert stripped is None or len(stripped) == len(packet) - srh.SRH_SIZE
    assert not srh.follows(b"")


@pytest.mark.spec("RFC 8754", "4.3")
def test_a_path_that_was_not_followed_to_its_end_is_not_taken() -> None:
    assert srh.strip(data(srh.outer_with(golden.CONTAINER, SEGMENT))) is None


def test_a_dissection_shows_it() -> None:
    text = describe(bytes(data(srh.outer_with(golden.CONTAINER, SEGMENT)))).as_text()
    assert "SRH" in text
    assert "segments_left" in text


def test_what_a_trim_leaves_is_read_as_trimmed() -> None:
    cut = trim(data(srh.outer_with(golden.CONTAINER, golden.CONTAINER), bytes(1000)), 256, DSCP.trimmed)
    stripped = srh.strip(cut)
    assert stripped is not None
    reason, traffic_class, opcode, _, qp, psn, ev, _, size, *_ = peeker(DSCP)(stripped)
    assert (reason, opcode, qp, psn, ev, size) == (None, WRITE_ONLY, 77, 5, 0x12345678, -1)
    assert traffic_class >> 2 == DSCP.trimmed
