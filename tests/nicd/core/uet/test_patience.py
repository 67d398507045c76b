"""How late packets may be: what raises it, its bound, and that it falls back."""

import pytest

from nicd.core.uet.patience import UetPatience

BASE = 1_000
REORDER = 2_500


def test_a_packet_that_came_late_raises_the_wait_by_a_quarter_more_than_it_lacked() -> None:
    patience = UetPatience(REORDER, BASE)
    patience.late(0, REORDER)
    assert (patience.raised_ns, patience.reorder_ns) == (0, REORDER), "it was late enough to be waited for"
    patience.late(0, REORDER + 400)
    assert (patience.raised_ns, patience.reorder_ns) == (500, REORDER + 500)
    patience.late(0, REORDER + 200)
    assert patience.raised_ns == 500, "less late than that"


@pytest.mark.parametrize("late_ns", [-5 * BASE, 1_000 * BASE])
def test_it_has_bounds(late_ns: int) -> None:
    patience = UetPatience(REORDER, BASE)
    patience.late(0, late_ns)
    assert patience.raised_ns == (8 * REORDER if late_ns > 0 else 0)


def test_it_falls_back_to_nothing() -> None:
    patience = UetPatience(REORDER, BASE)
    patience.late(7 * BASE, REORDER + 800)
    patience.heard(15 * BASE - 1)
    assert patience.raised_ns == 1_000
    patience.heard(15 * BASE)
    assert patience.raised_ns == 875
    patience.heard(16 * BASE)
    assert patience.raised_ns == 875, "once in eight base RTTs"
    for now in range(24, 1_000, 8):
        patience.heard(now * BASE)
    assert patience.raised_ns == 0
