"""Wall time of fabric instants."""

import pytest

from orchestrator.apps.observer import interpolated

CLOCKS = [(1.0, 100), (2.0, 200), (4.0, 220), (5.0, 220)]


@pytest.mark.parametrize(
    ("at_ns", "wall_s"), [(0, 1.0), (100, 1.0), (150, 1.5), (200, 2.0), (210, 3.0), (220, 4.0), (999, 5.0)]
)
def test_between_two_looks_time_is_interpolated_and_clamped_outside(at_ns: int, wall_s: float) -> None:
    assert interpolated(CLOCKS, at_ns) == wall_s


def test_without_looks_there_is_no_time() -> None:
    assert interpolated([], 5) == 0.0
