"""When a daemon is cut off: windows, bounds, mistakes."""

import pytest

from mrcfabric.control_cut import WINDOWS_MAX, ControlCuts
from mrcfabric.errors import RefusedError
from mrcfabric.units import NEVER


def test_a_window_begins_with_its_start_and_is_over_at_its_end() -> None:
    cuts = ControlCuts()
    assert cuts.end_ns == 0
    cuts.tell([[100, 200], (400, 500)], 50)
    assert [at_ns for at_ns in (99, 100, 199, 200, 399, 400, 500) if cuts.cut_off(at_ns)] == [100, 199, 400]
    assert cuts.end_ns == 500


def test_what_is_told_later_counts_instead() -> None:
    cuts = ControlCuts()
    cuts.tell([[100, 200]], 50)
    cuts.tell([], 60)
    assert not cuts.cut_off(150)
    assert cuts.end_ns == 0


def test_whoever_tells_of_a_cut_that_is_due_still_hears_so() -> None:
    cuts = ControlCuts()
    cuts.tell([[100, 200], [300, 400]], 350)
    assert cuts.cuts == ((351, 400),)
    assert not cuts.cut_off(350)
    assert cuts.cut_off(351)


@pytest.mark.parametrize(
    "windows",
    [
        None,
        5,
        "cut",
        [5],
        [[5]],
        [[5, 6, 7]],
        [["1", "2"]],
        [[True, 5]],
        [[5, 5]],
        [[-1, 5]],
        [[5, NEVER + 1]],
        [[1, None]],
    ],
)
def test_anything_else_is_refused_and_changes_nothing(windows: object) -> None:
    cuts = ControlCuts()
    cuts.tell([[100, 200]], 0)
    with pytest.raises(RefusedError, match=r"^windows: "):
        cuts.tell(windows, 0)
    assert cuts.cuts == ((100, 200),)


def test_there_are_no_more_than_so_many() -> None:
    many = [[2 * number, 2 * number + 1] for number in range(1, WINDOWS_MAX + 2)]
    with pytest.raises(RefusedError, match="at most 256"):
        ControlCuts().tell(many, 0)
    ControlCuts().tell(many[1:], 0)
