"""B2 and B4: their formulas by hand, and that quick points of each hold and can fail."""

from math import sqrt

import pytest

from studies.systems import moved_flows
from studies.systems.moved_flows import Group, Uplinks, measure_losses, measure_moves, moved_share, spread
from tests.studies.systems.findings import missed


def test_a_plain_group_keeps_one_flow_in_n_and_a_resilient_one_moves_one_in_n() -> None:
    assert (moved_share(2, resilient=False), moved_share(2, resilient=True)) == (0.5, 0.5)
    assert (moved_share(8, resilient=False), moved_share(8, resilient=True)) == (0.875, 0.125)


def test_the_spread_is_that_of_so_many_draws() -> None:
    assert spread(0.5, 100) == 0.05
    assert spread(0.25, 48) == pytest.approx(sqrt(0.1875 / 48))


def test_flows_over_the_dead_way_are_lost_until_the_table_is_written() -> None:
    assert missed(measure_losses(Uplinks(4))) == []


def other(members: int, *, resilient: bool) -> float:
    """The share of the other kind of group."""
    return moved_share(members, resilient=not resilient)


@pytest.mark.parametrize("resilient", [False, True])
def test_so_many_flows_move(resilient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert missed(measure_moves(Group(4, resilient))) == []
    monkeypatch.setattr(
        moved_flows, "moved_share", lambda members, *, resilient: moved_share(members, resilient=not resilient)
    )
    assert missed(measure_moves(Group(4, resilient)))
