"""What a receiver reads: the same as the complete parser, and a reason instead of an exception for anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire import fastpath
from mrcfabric.wire.dscp import Dscp, set_dscp
from mrcfabric.wire.entropy import EvOrder
from mrcfabric.wire.fastpath import peeker
from mrcfabric.wire.layout import FLAG_A, FLAG_RTX, FLAG_TS
from mrcfabric.wire.options import WireOptions
from mrcfabric.wire.packet import dissect
from mrcfabric.wire.pfc import encode
from tests.support.packets import data_packet, data_template, golden_packets, one_of_each
from tests.vectors import wire as golden

peek = peeker(Dscp(), golden.DESTINATION)
PACKETS = one_of_each()
TRIMMED = Dscp().trimmed


def test_a_data_packet_read_field_by_field() -> None:
    packet = memoryview(golden_packets()["write"])
    assert peek(packet)[:10] == (None, 0x12, 0xCB, FLAG_A | FLAG_TS, 0xABC, 0x102, golden.EV, 128, 5, golden.SOURCE)
    assert fastpath.read_data_ts(packet) == (3, 7, 0x1234, 1, 0x10000FFE, 0xDEADBEEF, 5)
    assert fastpath.read_imm(packet, 128) == 0xCAFEF00D
    assert packet[128:133] == b"hello"
    assert fastpath.read_data(data_packet(0xC7)) == (7, 6, 0x1000, 0xABCD, 1 << 20)


def test_control_packets_read_field_by_field() -> None:
    packets = golden_packets()
    assert peek(packets["sack"])[2:7] == (0xDC, FLAG_RTX, 0xABC, 0x100, golden.EV)
    assert fastpath.read_sack(packets["sack"]) == (1, 0, -2, 0x89ABCDEF, 0x100, 8, 1, 0b1011, 0x1234, 3, 1, 5, 17)
    assert fastpath.read_nack(packets["nack"]) == (1, 0x89ABCDEF, 0x105, 0x1234)
    assert fastpath.read_aeth(packets["acknowledge"]) == (0x1F, 7)
    assert fastpath.read_probe(packets["probe"]) == (0xBEEF, 0x1234)
    assert fastpath.read_endpoint_request(packets["endpoint_request"]) == (0, 0xFB, 0x1234)
    assert fastpath.read_endpoint_response(packets["endpoint_response"]) == (1, 0x1234)


@pytest.mark.spec("MRC 1.0", "7.5.5")
@given(ev=st.integers(0, 0xFFFFFFFF))
def test_the_order_of_the_halves_is_an_option_of_both_ends(ev: int) -> None:
    options = WireOptions(ev_order=EvOrder.PORT_HIGH)
    packet = data_template(options=options).build(0xC7, 0, 0, 0, 0, 0, 0, ev, golden.CONTAINER, b"")
    assert peeker(Dscp(), options=options)(packet)[6] == ev
    assert peek(packet)[6] == ev >> 16 | (ev & 0xFFFF) << 16


@pytest.mark.parametrize("name", PACKETS)
def test_every_truncation_of_every_packet_is_refused(name: str) -> None:
    packet = memoryview(PACKETS[name])
    assert peek(packet)[0] is None
    for size in range(len(packet)):
        assert peek(packet[:size])[0] == fastpath.TRUNCATED


def test_a_link_control_frame_is_no_packet() -> None:
    assert peek(encode(bytes(6), {3: 65_535}))[0] == fastpath.LINK_CONTROL
    assert peek(bytes(encode(bytes(6), {3: 65_535})))[0] == fastpath.TRUNCATED


@pytest.mark.spec("MRC 1.0", "1.8")
@pytest.mark.parametrize("name", PACKETS)
def test_a_trimmed_packet_is_good_while_its_headers_are_there(name: str) -> None:
    packet = bytearray(PACKETS[name])
    start = peek(packet)[7]
    set_dscp(packet, TRIMMED)
    for size in range(len(packet) + 1):
        reason, *_, payload_size, _source, _state = peek(memoryview(packet)[:size])
        assert (reason, payload_size) == ((None, -1) if size >= start else (fastpath.TRUNCATED, 0))


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [
        (0, 0x41, fastpath.NO_IPV6),
        (40, 0x41, fastpath.NO_IPV6),
        (6, 43, fastpath.NO_TUNNEL),
        (46, 6, fastpath.NO_UDP),
        (83, 0, fastpath.FOREIGN_PORT),
        (5, 0, fastpath.BAD_LENGTH),
        (45, 0, fastpath.BAD_LENGTH),
        (85, 0, fastpath.BAD_LENGTH),
        (88, 0x0A, fastpath.BAD_OPCODE),
        (89, 0x01, fastpath.BAD_TVER),
        (79, 0xFF, fastpath.FOREIGN_ADDRESS),
        (90, 0x12, fastpath.FOREIGN_PARTITION),
    ],
)
def test_one_wrong_byte_has_one_reason(offset: int, value: int, reason: str) -> None:
    packet = data_packet(0xC7, bytes(8))
    packet[offset] = value
    assert peek(packet)[0] == reason


@pytest.mark.spec("IBTA", "10.9.3")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (0xFFFF, 0xFFFF, True),
        (0xFFFF, 0x7FFF, True),
        (0x7FFF, 0x7FFF, False),
        (0x8001, 0x8002, False),
        (0x8000, 0x8000, False),
        (0x0001, 0x8001, True),
    ],
)
def test_partitions_are_told_by_15_bits_and_one_full_member(one: int, other: int, same: bool) -> None:
    assert fastpath.same_partition(one, other) == fastpath.same_partition(other, one) == same


def test_lengths_that_lie() -> None:
    packet = data_packet(0xC7, bytes(8))
    assert peek(packet + b"\0")[0] == fastpath.BAD_LENGTH
    set_dscp(packet, TRIMMED)
    assert peek(packet + b"\0")[0] == fastpath.BAD_LENGTH
    # One byte less, and every length says so: payload and padding are no multiple of four.
    odd = data_packet(0xC7, bytes(8))[:-1]
    for low_byte in (5, 45, 85):
        odd[low_byte] -= 1
    assert peek(odd)[0] == fastpath.BAD_PADDING
    sack = golden_packets()["sack"]
    sack[89] = 0x10
    assert peek(sack)[0] == fastpath.BAD_LENGTH
    sack[89], sack[96] = 0, FLAG_TS
    assert peek(sack)[0] == fastpath.BAD_OPCODE


@given(
    name=st.sampled_from(sorted(PACKETS)),
    changes=st.lists(st.tuples(st.integers(0, 139), st.integers(0, 255)), max_size=3),
    size=st.integers(0, 160),
    trimmed=st.booleans(),
)
def test_the_fast_path_takes_what_the_complete_parser_takes(
    name: str, changes: list[tuple[int, int]], size: int, trimmed: bool
) -> None:
    packet = bytearray(PACKETS[name])
    for offset, value in changes:
        packet[offset % len(packet)] = value
    if trimmed and len(packet) > 1:
        set_dscp(packet, TRIMMED)
    packet = packet[: max(size, 2)]
    trimmed = bool(Dscp().trimmed_table()[(packet[0] & 15) << 2 | packet[1] >> 6])
    fast = peeker(Dscp())(packet)
    full, reason = dissect(packet, trimmed_ok=trimmed)
    # The complete parser also knows the SRH, which these packets are too short to have.
    assert (fast[0] is None) == (reason is None)
    if reason is None and not trimmed:
        assert fast[8] == len(full.payload)


@given(data=st.binary(max_size=300))
def test_random_bytes_never_raise(data: bytes) -> None:
    assert peek(data)[0] is not None
