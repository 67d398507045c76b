"""What is due when: timers by name, the next one first.

Owns the order of what falls on one instant: by kind, then by port.
"""

from enum import IntEnum
from heapq import heappop, heappush
from typing import Final, TypeAlias

from mrcfabric.units import NEVER, Instant


class Kind(IntEnum):
    """The timers of a routing core, in the order in which those of one instant expire."""

    FIB = 0
    CARRIER = 1
    DETECT = 2
    HOLD = 3
    RESEND = 4
    RETRY = 5
    REUSE = 6
    STALE = 7
    PROCESSOR = 8
    ADVERTISE = 9
    KEEPALIVE = 10
    BFD = 11


Timer: TypeAlias = tuple[Kind, int]
"""(kind, port); port 0 for those of the whole switch."""

_STALE_MAX: Final = 64
"""So many entries of the heap may have been overtaken before it is built anew."""


class Timetable:
    """Timers that can be set anew at any time."""

    def __init__(self) -> None:
        self._due: dict[Timer, Instant] = {}
        self._heap: list[tuple[Instant, Timer]] = []
        self.next_ns: Instant = NEVER
        """When the next timer expires."""

    def set(self, kind: Kind, port: int, at_ns: Instant) -> None:
        """Set a timer, or put it off; NEVER stops it."""
        timer = kind, port
        if at_ns == self._due.get(timer, NEVER):
            return
        if at_ns == NEVER:
            del self._due[timer]
        else:
            self._due[timer] = at_ns
            heappush(self._heap, (at_ns, timer))
        self._settle()

    def due(self, kind: Kind, port: int) -> Instant:
        """When a timer expires; NEVER while it is not set."""
        return self._due.get((kind, port), NEVER)

    def take(self, until: Instant) -> tuple[Instant, Kind, int] | None:
        """The next timer that expires up to and including `until`, which is then no longer set."""
        if not self._heap or self.next_ns > until:
            return None
        at_ns, (kind, port) = heappop(self._heap)
        del self._due[kind, port]
        self._settle()
        return at_ns, kind, port

    def _settle(self) -> None:
        """Forget entries that were overtaken, and note the next one that counts."""
        if len(self._heap) > _STALE_MAX + 2 * len(self._due):
            self._heap = sorted((at_ns, timer) for timer, at_ns in self._due.items())
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        self.next_ns = self._heap[0][0] if self._heap else NEVER
