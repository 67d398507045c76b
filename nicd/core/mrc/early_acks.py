"""Messages that are whole before older ones: when the responder acknowledges one of them alone.

Owns the short wait. Paths differ by their queues, so for most such messages the older ones are whole a moment later and
the cumulative ACK covers them; only a message behind a retransmission is worth an ACK of its own. `assembly` knows what
is whole, the responder sends the packet. MRC 1.0 section 3: WRITEs complete in any order; when a responder says so is
not public.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from mrcfabric.units import Instant
from nicd.core.mrc.assembly import Assembly, Incoming
from nicd.core.timers import Timer, Timers

Tell: TypeAlias = Callable[[Instant, int, int], None]
"""(now, last PSN, message number + 1): one message is complete."""


class EarlyAcks:
    """Those of one QP, as many as `assembly` has records at most."""

    __slots__ = ("_assembly", "_tell", "_timer", "_wait_ns", "_waiting")

    def __init__(self, timers: Timers, assembly: Assembly, wait_ns: int, tell: Tell) -> None:
        self._assembly = assembly
        self._wait_ns = wait_ns
        self._tell = tell
        self._waiting: deque[tuple[Instant, Incoming]] = deque()
        self._timer = Timer(timers, self._due)

    def add(self, now: Instant, message: Incoming) -> None:
        """A message is whole before its turn."""
        due_ns = now + self._wait_ns
        waiting = self._waiting
        # Behind one whose turn has not come there is no more than the tracking window lets through.
        while waiting and self._assembly.number_of(waiting[0][1]) is None:
            waiting.popleft()
        waiting.append((due_ns, message))
        self._timer.set_by(due_ns)

    def stop(self) -> None:
        """The QP is gone or has failed."""
        self._waiting.clear()
        self._timer.cancel()

    def _due(self, now: Instant) -> None:
        waiting = self._waiting
        while waiting:
            due_ns, message = waiting[0]
            number = self._assembly.number_of(message)
            if number is not None:
                if due_ns > now:
                    self._timer.set(due_ns)
                    return
                self._tell(now, message.last, number + 1)
            waiting.popleft()
