"""Flow control packets: six bytes by hand, what they say, bytes that are none, and counts modulo 4096."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.flow_control import (
    BAD_LPCRC,
    BAD_OPERAND,
    BAD_SIZE,
    BLOCKS_MAX,
    INIT,
    MODULUS,
    NORMAL,
    FlowControl,
    encode,
    fault,
    may_start,
    parse,
    silence_ns,
)
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.vcrc import crc16


def test_layout_by_hand() -> None:
    frame = encode(INIT, 0xE, 0x123, 0x456)
    assert frame[:4].hex() == "1123e456"
    assert frame[4:] == crc16(frame[:4]).to_bytes(2, "little")
    assert type(frame) is ControlFrame


@given(st.sampled_from((NORMAL, INIT)), st.integers(0, 15), st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_what_is_written_is_read(operand: int, vl: int, fctbs: int, fccl: int) -> None:
    assert parse(encode(operand, vl, fctbs, fccl)) == FlowControl(operand, vl, fctbs % MODULUS, fccl % MODULUS)


def test_a_spoilt_packet_has_a_wrong_sum_whatever_bit_it_is() -> None:
    frame = encode(NORMAL, 0, 0, BLOCKS_MAX)
    for bit in range(48):
        spoilt = bytearray(frame)
        spoilt[bit // 8] ^= 1 << bit % 8
        assert fault(spoilt) == BAD_LPCRC
        assert parse(spoilt) is None


def test_other_bytes_are_none_of_ours() -> None:
    assert [fault(bytes(size)) for size in (0, 5, 7, 64)] == [BAD_SIZE] * 4
    head = bytes.fromhex("21230456")
    assert fault(head + crc16(head).to_bytes(2, "little")) == BAD_OPERAND


@given(st.binary(max_size=12))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    assert (parse(data) is None) == (fault(data) is not None)


@given(st.integers(0, MODULUS - 1), st.integers(0, BLOCKS_MAX), st.integers(1, 128))
def test_a_packet_may_start_when_all_its_blocks_are_granted(fctbs: int, granted: int, blocks: int) -> None:
    assert may_start((fctbs + granted) % MODULUS, fctbs, blocks) == (blocks <= granted)


@pytest.mark.parametrize(("rate_bps", "longest_ns"), [(10**10, 209_715), (10**11, 20_971), (4 * 10**11, 5_242)])
def test_silence_is_65_536_symbols_of_four_lanes(rate_bps: int, longest_ns: int) -> None:
    assert silence_ns(rate_bps) == longest_ns
