"""Wall time of fabric instants."""

import pytest

from orchestrator.measures.wall_clock import interpolated, recent_dilation, wall_between_s

CLOCKS = [(1.0, 100), (2.0, 200), (4.0, 220), (5.0, 220)]


@pytest.mark.parametrize(
    ("at_ns", "wall_s"), [(0, 1.0), (100, 1.0), (150, 1.5), (200, 2.0), (210, 3.0), (220, 4.0), (999, 5.0)]
)
def test_between_two_looks_time_is_interpolated_and_clamped_outside(at_ns: int, wall_s: float) -> None:
    assert interpolated(CLOCKS, at_ns) == wall_s
    assert wall_between_s(CLOCKS, 150, at_ns) == wall_s - 1.5


def test_without_looks_there_is_no_time() -> None:
    assert interpolated([], 5) == 0.0
    assert recent_dilation([]) == recent_dilation([(1.0, 5)]) == recent_dilation([(1.0, 5), (2.0, 5)]) == 0.0


def test_the_pace_of_late_forgets_what_was_long_ago() -> None:
    slow = [(float(number), number) for number in range(10)]
    fast = [(10.0 + number / 1000, 10 + number) for number in range(8)]
    assert recent_dilation(slow) == pytest.approx(1e9)
    assert recent_dilation(slow + fast) == pytest.approx(1e6)
