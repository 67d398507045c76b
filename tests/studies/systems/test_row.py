"""Findings hold between their bounds, and nowhere else."""

import pytest

from studies.systems.row import at_least, at_most, between, near, seen


@pytest.mark.parametrize(("ours", "held"), [(0.97, True), (1.03, True), (0.96, False), (1.04, False)])
def test_near_has_room_on_both_sides(ours: float, held: bool) -> None:
    assert near("p", 1.0, ours, 0.031).held is held


def test_no_room_is_equality() -> None:
    assert near("p", 4096, 4096, 0.0, 0).held
    assert not near("p", 4096, 4097, 0.0, 0).held
    assert not near("p", 0, 1, 0.5, 0).held


def test_one_sided_bounds_and_bands() -> None:
    assert at_least("p", 0.9, 0.9).held
    assert not at_least("p", 0.9, 0.89).held
    assert at_most("p", 0.1, 0.1).held
    assert not at_most("p", 0.1, 0.11).held
    assert [between("p", 1, 2, value).held for value in (0.9, 1, 2, 2.1)] == [False, True, True, False]


def test_figures_are_written_with_their_unit() -> None:
    found = near("p", 67_108_864, 67_108_864, 0.0, 0, "ns")
    assert (found.wanted, found.shown) == ("67,108,864 ns", "67,108,864 ns")
    assert at_most("p", 3, 1.25, 1, "ms").wanted == "at most 3.0 ms"


def test_a_figure_that_is_only_shown_is_not_judged() -> None:
    assert not seen("p", 0.5).judged
    assert near("p", 1, 1, 0.1).judged
