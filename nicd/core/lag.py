"""Things that take a fixed time: each comes out that long after it went in, in order, however many are under way.

Owns the queue and its timer. MRC 1.0 leaves the latency of hosts and NICs to the implementation.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from mrcfabric.units import Instant
from nicd.core.timers import Timer, Timers

T = TypeVar("T")


class Lag(Generic[T]):
    """A pipeline of `length_ns`; `arrived(now, thing)` is called at the instant at which a thing comes out."""

    __slots__ = ("_arrived", "_length_ns", "_timer", "_under_way")

    def __init__(self, timers: Timers, length_ns: int, arrived: Callable[[Instant, T], None]) -> None:
        self._length_ns = length_ns
        self._arrived = arrived
        self._under_way: deque[tuple[Instant, T]] = deque()
        self._timer = Timer(timers, self._come_out)

    def put(self, now: Instant, thing: T) -> None:
        """`thing` goes in."""
        self._under_way.append((now + self._length_ns, thing))
        self._timer.set_by(now + self._length_ns)

    def clear(self) -> None:
        """What is under way never comes out."""
        self._under_way.clear()
        self._timer.cancel()

    def _come_out(self, now: Instant) -> None:
        waiting = self._under_way
        while waiting and waiting[0][0] <= now:
            self._arrived(now, waiting.popleft()[1])
        if waiting:
            self._timer.set(waiting[0][0])
