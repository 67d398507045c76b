"""Maps fabric time to wall time, from looks at both clocks.

Pure. Fabric time advances unevenly. Between two looks it is assumed to advance evenly. So a wall time is exact to the
distance between two looks, and packets keep their order.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from mrcfabric.units import Instant

LOOKS_KEPT: Final = 256
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class WallClock:
    """Pairs of (fabric time, wall time since 1970), both in nanoseconds and both ascending."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[Instant, int]] = deque(maxlen=LOOKS_KEPT)

    def look(self, at_ns: Instant, wall_ns: int) -> None:
        """Enter the readings of both clocks.

        If the wall clock was set back, it stands still here until it catches up.
        """
        if self._pairs:
            at_ns, wall_ns = max(at_ns, self._pairs[-1][0]), max(wall_ns, self._pairs[-1][1])
        self._pairs.append((at_ns, wall_ns))

    def wall_ns(self, at_ns: Instant) -> int:
        """When the fabric reached an instant. Before the first look and after the last one, the time of that look."""
        assert self._pairs, "no look yet"
        place = bisect_right(self._pairs, at_ns, key=lambda pair: pair[0])
        if place == 0:
            return self._pairs[0][1]
        before_ns, before_wall_ns = self._pairs[place - 1]
        if place == len(self._pairs):
            return before_wall_ns
        after_ns, after_wall_ns = self._pairs[place]
        return before_wall_ns + (at_ns - before_ns) * (after_wall_ns - before_wall_ns) // (after_ns - before_ns)


def whose(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say whose wall clock it is when there are several hosts (`orchestrator.hosts.clock.host_pairs`); "" for one host.

    Fabric time is the same on all hosts, so no time stamp needs a correction for another host's clock.
    """
    if not rows:
        return ""
    leader = rows[0]["host"]
    ahead = [
        f"{row['peer']} {row['clock_offset_s'] * 1e3:+.3f} ms (+-{row['clock_error_s'] * 1e3:.3f})"
        for row in rows
        if row["host"] == leader and row["clock_offset_s"] is not None
    ]
    others = f"; clocks of the others, which stamp nothing here, against it: {', '.join(ahead)}" if ahead else ""
    return f"wall time is that of host {leader}{others}"


def iso(wall_ns: int) -> str:
    """Format nanoseconds since 1970 as `2026-03-21T12:00:00.000001Z`."""
    return (_EPOCH + timedelta(microseconds=wall_ns // 1000)).isoformat(timespec="microseconds").replace("+00:00", "Z")
