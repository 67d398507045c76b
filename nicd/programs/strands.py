"""Coroutines in fabric time: `async def` without an event loop, resumed at exact instants in a fixed order.

Owns what can be awaited (`Signal`, `Strand`) and the order in which strands resume: instant by instant, and within one
instant in the order in which they became ready. `host` fires signals and says when an instant has come.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Generator
from heapq import heappop, heappush
from typing import Any, Final, Generic, TypeVar

from mrcfabric.units import NEVER, Instant

T = TypeVar("T")

_ALIVE_LEAST: Final = 16


class Signal(Generic[T]):
    """Something that happens once. Awaiting it gives the value it was fired with."""

    __slots__ = ("_strands", "_waiting", "fired", "value")

    def __init__(self, strands: "Strands") -> None:
        self._strands = strands
        self._waiting: list[Strand[Any]] = []
        self.fired = False
        self.value: T

    def fire(self, value: T) -> None:
        """Fire the signal: waiting strands resume at this instant."""
        assert not self.fired, "a signal fires once"
        self.fired = True
        self.value = value
        self._strands.ready.extend(self._waiting)
        self._waiting.clear()

    def wait(self, strand: "Strand[Any]") -> None:
        """For `Strand`: let `strand` resume when the signal fires."""
        self._waiting.append(strand)

    def __await__(self) -> Generator["Signal[Any]", None, T]:
        if not self.fired:
            yield self
        return self.value


class Strand(Generic[T]):
    """One running coroutine. Awaiting it gives what it returns."""

    __slots__ = ("_coroutine", "end")

    def __init__(self, strands: "Strands", coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self.end: Signal[T] = Signal(strands)

    def step(self) -> None:
        """Run the coroutine up to its next wait. Raises what the coroutine raises."""
        try:
            awaited = self._coroutine.send(None)
        except StopIteration as stop:
            self.end.fire(stop.value)
        else:
            awaited.wait(self)

    def close(self) -> None:
        """End the coroutine."""
        self._coroutine.close()

    def __await__(self) -> Generator[Signal[Any], None, T]:
        return self.end.__await__()


class Strands:
    """All strands of one rank: the running ones, the ready ones, and the sleepers."""

    __slots__ = ("_alive", "_alive_max", "_sequence", "_sleeping", "now", "ready")

    def __init__(self, now: Instant = 0) -> None:
        self.now = now
        self.ready: deque[Strand[Any]] = deque()
        self._alive: list[Strand[Any]] = []
        self._alive_max = _ALIVE_LEAST
        """At this number of strands the ended ones are removed from the list."""
        self._sleeping: list[tuple[Instant, int, Signal[None]]] = []
        self._sequence = 0

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Strand[T]:
        """Start a strand; it first runs at this instant."""
        strand = Strand(self, coroutine)
        if len(self._alive) >= self._alive_max:
            self._alive = [other for other in self._alive if not other.end.fired]
            self._alive_max = 2 * len(self._alive) + _ALIVE_LEAST
        self._alive.append(strand)
        self.ready.append(strand)
        return strand

    def until(self, at_ns: Instant) -> Signal[None]:
        """A signal that fires at an instant, or at once if that instant has passed."""
        signal: Signal[None] = Signal(self)
        if at_ns <= self.now:
            signal.fire(None)
        else:
            self._sequence += 1
            heappush(self._sleeping, (at_ns, self._sequence, signal))
        return signal

    @property
    def next_ns(self) -> Instant:
        """When to call `run` next: `now` while a strand is ready, NEVER if none is and nobody sleeps."""
        if self.ready:
            return self.now
        return self._sleeping[0][0] if self._sleeping else NEVER

    def run(self, now: Instant, guard: Callable[[], bool]) -> None:
        """Run every strand that is ready or wakes up by `now`, as long as `guard` holds."""
        self.now = now
        while self._sleeping and self._sleeping[0][0] <= now:
            heappop(self._sleeping)[2].fire(None)
        while self.ready and guard():
            self.ready.popleft().step()

    def close(self) -> None:
        """End all strands."""
        for strand in self._alive:
            strand.close()
        self._alive.clear()
        self.ready.clear()
        self._sleeping.clear()
