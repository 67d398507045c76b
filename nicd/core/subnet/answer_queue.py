"""What waits for a subnet manager that takes its time over each packet that comes.

Owns the order and the instants; without a delay a packet is dealt with as it comes.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from mrcfabric.units import Instant
from mrcfabric.wire.smp import Smp
from nicd.core.timers import Timer, Timers

Deal: TypeAlias = Callable[[Instant, Smp], None]


class AnswerQueue:
    """Packets that a manager has still to deal with."""

    def __init__(self, timers: Timers, deal: Deal) -> None:
        self.delay_ns = 0
        """How long it takes over each packet, one after another."""
        self._deal = deal
        self._waiting: deque[tuple[Instant, Smp]] = deque()
        """(when it will have been dealt with, packet)"""
        self._timer = Timer(timers, self._on_timer)

    def take(self, now: Instant, smp: Smp) -> None:
        """A packet has come."""
        if not self.delay_ns and not self._waiting:
            self._deal(now, smp)
            return
        before = self._waiting[-1][0] if self._waiting else now
        self._waiting.append((max(before, now) + self.delay_ns, smp))
        self._timer.set_by(self._waiting[0][0])

    def clear(self) -> None:
        """Deal with nothing that waits."""
        self._timer.cancel()
        self._waiting.clear()

    def _on_timer(self, now: Instant) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            self._deal(now, self._waiting.popleft()[1])
        if self._waiting:
            self._timer.set(self._waiting[0][0])
