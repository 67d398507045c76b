"""Tracking of received PSNs against a plain set, across the wrap of 24 bits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicd.core.mrc.sack import BITMAP_BITS, DUPLICATE, NEW, OUTSIDE, ReceiveWindow
from nicd.core.stats import Distances

MASK = 0xFFFFFF
MPR = 256


@pytest.mark.spec("MRC 1.0", "3")
@given(st.integers(0, MASK), st.lists(st.integers(0, 400), max_size=300), st.booleans())
def test_the_window_agrees_with_a_set(first: int, arrivals: list[int], recent: bool) -> None:
    window = ReceiveWindow(first, MPR)
    seen: set[int] = set()
    for offset in arrivals:
        verdict, psn = window.classify((first + offset) & MASK)
        assert psn == first + offset
        if psn in seen:
            assert verdict == DUPLICATE
        elif psn >= window.expected + MPR:
            assert verdict == OUTSIDE
        else:
            assert verdict == NEW
            window.receive(psn)
            seen.add(psn)
        cack = first - 1
        while cack + 1 in seen:
            cack += 1
        assert window.cack == cack
        assert window.ooo_count == sum(psn > cack for psn in seen)
        base, bitmap = window.bitmap(psn, recent)
        for bit in range(BITMAP_BITS):
            assert bool(bitmap >> bit & 1) == (cack + base + bit in seen)
        if recent and psn > cack:
            assert cack + base <= psn < cack + base + BITMAP_BITS


@given(st.sets(st.integers(1, MPR - 1)))
def test_bitmaps_show_all_that_has_arrived(arrived: set[int]) -> None:
    window = ReceiveWindow(1000, MPR)
    for offset in arrived:
        window.receive(1000 + offset)
    shown = {
        window.cack + base + bit
        for base, bitmap in window.bitmaps(8)
        for bit in range(BITMAP_BITS)
        if bitmap >> bit & 1
    }
    assert shown == {1000 + offset for offset in arrived}
    assert len(window.bitmaps(1)) == 1


@pytest.mark.parametrize(
    ("psn", "verdict"),
    [(100, NEW), (99, DUPLICATE), (100 + MPR - 1, NEW), (100 + MPR, OUTSIDE), ((100 + (1 << 23)) & MASK, OUTSIDE)],
)
@pytest.mark.spec("MRC 1.0", "3")
def test_edges_of_the_window(psn: int, verdict: int) -> None:
    assert ReceiveWindow(100, MPR).classify(psn)[0] == verdict


def test_packets_ahead_of_their_turn_are_counted_by_how_far() -> None:
    ahead = Distances()
    window = ReceiveWindow(1000, MPR, ahead)
    for psn in (1001, 1002, 1003, 1000, 1008, 1004):
        window.receive(psn)
    # By 1, by 2, by 3, in order, by 4, in order.
    assert ahead.counts[:4] == [1, 2, 1, 0]
    assert (sum(ahead.counts), ahead.total) == (4, 1 + 2 + 3 + 4)
