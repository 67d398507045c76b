"""When a fabric came to an instant, in wall time: looked up between the looks at which both clocks were read.

Pure. Fabric time goes on unevenly; between two looks it is taken to have gone on evenly, so a wall time is good to the
distance of two looks, and the order of packets is never turned round.
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
        """Both clocks as they stand. A wall clock that was set back stands still here until it has caught up."""
        if self._pairs:
            at_ns, wall_ns = max(at_ns, self._pairs[-1][0]), max(wall_ns, self._pairs[-1][1])
        self._pairs.append((at_ns, wall_ns))

    def wall_ns(self, at_ns: Instant) -> int:
        """When the fabric came to that instant; before the first look and after the last one, those."""
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
    """Whose wall clock it is, where several hosts have one (`orchestrator.hosts.clock.host_pairs`); "" for one host.

    Fabric time is the same on all of them, so that nothing need be taken off what another host's clock shows.
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
    """Nanoseconds since 1970 as `2026-03-21T12:00:00.000001Z`."""
    return (_EPOCH + timedelta(microseconds=wall_ns // 1000)).isoformat(timespec="microseconds").replace("+00:00", "Z")
