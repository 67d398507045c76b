"""The queue of EV events: what the controller is told of EVs that fail and come back.

Owns the bounded queue and the count of events lost. `ev_profile` tells which EV changed, the profile of the QP says
whether the controller wants to know, and the daemon hands the events out.

Controller API: events for GOOD and ASSUMED_BAD alone, and with each the number of *events* lost before it.
"""

from collections import deque
from typing import Final

from mrcfabric.units import Instant
from nicd.core.ev_state import EvState

# Controller API: SKIP is the NIC's own affair and shows as GOOD.
SHOWN: Final = {
    EvState.GOOD: "GOOD",
    EvState.SKIP: "GOOD",
    EvState.ASSUMED_BAD: "ASSUMED_BAD",
    EvState.DENIED: "DENIED",
}
"""States as a controller sees them; of an EV that no QP uses it sees UNKNOWN."""
UNKNOWN: Final = "UNKNOWN"


class EvEvents:
    """One per NIC."""

    __slots__ = ("_limit", "_lost_since", "_queue", "lost", "told")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: deque[dict[str, int | str]] = deque()
        self._lost_since = 0
        self.told = 0
        """Events put into the queue since the start, and lost because it was full."""
        self.lost = 0

    def add(self, now: Instant, profile: int, qpn: int, ev: int, port: int, state: EvState) -> None:
        """An EV of a QP has become GOOD or ASSUMED_BAD; `port` counts from 1."""
        if len(self._queue) >= self._limit:
            self.lost += 1
            self._lost_since += 1
            return
        self.told += 1
        self._queue.append(
            {
                "at_ns": now,
                "profile": profile,
                "qpn": qpn,
                "ev": ev,
                "port": port,
                "state": SHOWN[state],
                "drop_count": self._lost_since,
            }
        )
        self._lost_since = 0

    def take(self, limit: int) -> list[dict[str, int | str]]:
        """Up to `limit` events, oldest first; they leave the queue. `drop_count`: events lost just before."""
        return [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
