"""Wall time of a run on real daemons, told from looks: when fabric time was where.

Pure: from the pairs of wall and fabric time that a recording has. Between two looks wall time is taken to pass evenly.
"""

from bisect import bisect_left
from collections.abc import Sequence

from mrcfabric.units import NS_PER_S, Instant

RECENT_LOOKS = 8
"""The pace of late is that over so many looks."""


def wall_between_s(clocks: Sequence[tuple[float, Instant]], start_ns: Instant, end_ns: Instant) -> float:
    """Wall seconds that passed between two instants of fabric time."""
    return interpolated(clocks, end_ns) - interpolated(clocks, start_ns)


def recent_dilation(clocks: Sequence[tuple[float, Instant]]) -> float:
    """Wall time over fabric time of late; 0.0 while nothing has moved."""
    if len(clocks) < 2:
        return 0.0
    (wall, fabric_ns), (last_wall, last_ns) = clocks[max(0, len(clocks) - RECENT_LOOKS)], clocks[-1]
    return (last_wall - wall) * NS_PER_S / (last_ns - fabric_ns) if last_ns > fabric_ns else 0.0


def interpolated(clocks: Sequence[tuple[float, Instant]], at_ns: Instant) -> float:
    """Wall seconds at a fabric instant, by the looks before and after it; clamped to the first and the last."""
    if not clocks:
        return 0.0
    place = bisect_left(clocks, at_ns, key=lambda look: look[1])
    if place == 0:
        return clocks[0][0]
    if place == len(clocks):
        return clocks[-1][0]
    (wall, before_ns), (next_wall, after_ns) = clocks[place - 1], clocks[place]
    return wall + (next_wall - wall) * (at_ns - before_ns) / (after_ns - before_ns)
