"""Packets behind an LRH: both sums on the specification's sample, blocks, faults, and another VL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire import lrh
from mrcfabric.wire.lrh import blocks_of, link_fault, lrh_icrc_ok, set_vl, vcrc_ok
from tests.support.lrh_packets import IBTA_SAMPLE, one_of_each_lrh


def test_the_sample_packet_of_the_specification_has_good_sums() -> None:
    assert link_fault(IBTA_SAMPLE) is None
    assert lrh_icrc_ok(IBTA_SAMPLE)
    assert vcrc_ok(IBTA_SAMPLE)
    assert (lrh.vl_of(IBTA_SAMPLE), lrh.sl_of(IBTA_SAMPLE)) == (7, 1)
    assert (lrh.dlid_of(IBTA_SAMPLE), lrh.slid_of(IBTA_SAMPLE)) == (0x375C, 0x17D2)


@pytest.mark.parametrize("vl", range(16))
def test_another_vl_leaves_the_icrc_and_mends_the_vcrc(vl: int) -> None:
    for before in (IBTA_SAMPLE, *one_of_each_lrh(vl=3)):
        packet = bytearray(before)
        set_vl(packet, vl)
        assert lrh.vl_of(packet) == vl
        assert packet[1:-2] == before[1:-2]
        assert lrh_icrc_ok(packet)
        assert vcrc_ok(packet)
        packet[20] ^= 1
        set_vl(packet, vl ^ 5)
        assert not vcrc_ok(packet), "a wrong sum stays wrong"


def test_every_bit_counts_in_one_of_the_sums() -> None:
    packet = bytearray(IBTA_SAMPLE)
    for bit in range(8 * (len(packet) - 2)):
        packet[bit // 8] ^= 1 << bit % 8
        assert not vcrc_ok(packet)
        # The VL and the BTH's fifth byte may change on the way.
        assert lrh_icrc_ok(packet) == (4 <= bit < 8 or bit // 8 == 12)
        packet[bit // 8] ^= 1 << bit % 8


def test_blocks_are_64_bytes_and_the_last_one_counts_whole() -> None:
    assert [blocks_of(size) for size in (1, 63, 64, 65, 128, 4_130)] == [1, 1, 1, 2, 2, 65]


def test_why_a_link_cannot_take_a_packet() -> None:
    good = bytearray(IBTA_SAMPLE)
    assert link_fault(good[:25]) == lrh.TRUNCATED
    assert link_fault(good[:-1]) == lrh.TRUNCATED
    assert link_fault(good + b"x") == lrh.BAD_LENGTH
    for place, reason in ((0, lrh.BAD_LVER), (1, lrh.BAD_LNH)):
        good[place] ^= 1
        assert link_fault(good) == reason
        good[place] ^= 1
    good[4] |= 0xF8
    assert link_fault(good) is None, "five reserved bits are ignored"


@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    if link_fault(data) is None:
        packet = bytearray(data)
        set_vl(packet, 9)
        assert vcrc_ok(packet) == vcrc_ok(data)
