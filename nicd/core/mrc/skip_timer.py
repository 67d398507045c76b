"""SKIP by the clock instead of by the scan: an implementation timer, as MRC 1.0 11.2.2 allows.

Owns when each EV of one QP leaves SKIP. `ev_deck.TimedDeck` is the scan that leaves such an EV alone meanwhile.
"""

from collections import deque

from mrcfabric.units import Instant
from nicd.core.ev_state import EvState, EvTrigger
from nicd.core.mrc.ev_profile import EvProfile
from nicd.core.timers import Timer, Timers


class SkipTimer:
    """One per QP that has such a timer."""

    __slots__ = ("_entered", "_profile", "_queue", "_skip_ns", "_timer")

    def __init__(self, profile: EvProfile, skip_ns: int, timers: Timers) -> None:
        self._profile = profile
        self._skip_ns = skip_ns
        self._queue: deque[tuple[Instant, int]] = deque()
        """(when a stay is over, index of the EV), in order of time: every stay is equally long."""
        self._entered: dict[int, Instant] = {}
        """Index of an EV -> when its latest stay is over; only the latest counts."""
        self._timer = Timer(timers, self._due)

    def enter(self, now: Instant, index: int) -> None:
        """An EV has gone into SKIP."""
        over_ns = now + self._skip_ns
        self._queue.append((over_ns, index))
        self._entered[index] = over_ns
        self._timer.set_by(over_ns)

    def _due(self, now: Instant) -> None:
        queue = self._queue
        while queue and queue[0][0] <= now:
            over_ns, index = queue.popleft()
            if self._entered.get(index) == over_ns:
                del self._entered[index]
                if self._profile.states[index] == EvState.SKIP:
                    self._profile.feedback(now, index, EvTrigger.SCAN)
        if queue:
            self._timer.set(queue[0][0])
