"""The timers of one NIC: a heap of instants with callbacks, earliest first, then in the order they were set.

Owns order only. Timers are cheap to leave behind: an owner that no longer needs one lets it fire and then checks
whether there is anything to do, or cancels it by `cancel`, so that a NIC with nothing pending has no timer.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

from mrcfabric.units import NEVER, Instant

Callback: TypeAlias = Callable[[Instant], None]


class Timer:
    """One timer of one owner; at most one instant at a time."""

    __slots__ = ("_timers", "at_ns", "callback")

    def __init__(self, timers: "Timers", callback: Callback) -> None:
        self._timers = timers
        self.callback = callback
        self.at_ns: Instant = NEVER
        """When it fires; NEVER when it is not set."""

    def set(self, at_ns: Instant) -> None:
        """Fire at `at_ns` and at no other time."""
        if at_ns != self.at_ns:
            self.at_ns = at_ns
            self._timers.push(at_ns, self)

    def set_by(self, at_ns: Instant) -> None:
        """Fire no later than `at_ns`."""
        if at_ns < self.at_ns:
            self.set(at_ns)

    def cancel(self) -> None:
        """Do not fire."""
        self.at_ns = NEVER


class Timers:
    """All timers of a NIC. `next_ns` is exact whenever `settle` has been called after the last change."""

    __slots__ = ("_heap", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, int, Timer]] = []
        self._sequence = 0

    def push(self, at_ns: Instant, timer: Timer) -> None:
        """For `Timer.set`."""
        if at_ns != NEVER:
            self._sequence += 1
            heappush(self._heap, (at_ns, self._sequence, timer))

    def next_ns(self) -> Instant:
        """When the next timer fires, NEVER without one; forgets cancelled ones on the way."""
        heap = self._heap
        while heap:
            at_ns, _, timer = heap[0]
            if timer.at_ns == at_ns:
                return at_ns
            heappop(heap)
        return NEVER

    def fire(self, now: Instant) -> None:
        """Call the first timer, which `next_ns` has found due at `now`."""
        timer = heappop(self._heap)[2]
        timer.at_ns = NEVER
        timer.callback(now)
