"""Whether a late packet without a mark has met a full receiver, or only a path longer than configured.

Owns the verdict of one congestion context; `nscc` acts on it. The last hop of an MRC fabric does not mark (MRC 1.0 4),
so only delay tells of the receiver's queue. A delay beyond what that queue can hold comes from the path. So does a
smaller delay that stays, nearly constant, at a window of a packet or two: the queue of several senders would vary, and
would drain when all of them reduce their windows. The verdict holds until a round trip is short again, or a trim on the
last hop proves the queue.
"""

from typing import TYPE_CHECKING, Final

from mrcfabric.units import Instant

if TYPE_CHECKING:
    from nicd.core.settings import NicSettings

LONGER_RTTS: Final = 64
"""A delay that stays above the target for so many round trips may come from the path."""
STEADY_PARTS: Final = 8
"""It does come from the path if it has varied by less than one part in so many."""
_SMALL_PACKETS: Final = 2
"""A window of at most so many packets fills no queue."""


class Lateness:
    """One context's late round trips without a mark."""

    __slots__ = ("_answers", "_ceiling_ns", "_least_ns", "_most_ns", "_since_ns", "_small_bytes", "_trusted")

    def __init__(self, settings: "NicSettings") -> None:
        self._answers = settings.late_is_congestion
        self._ceiling_ns = settings.late_delay_ns_max
        self._small_bytes = _SMALL_PACKETS * settings.mtu_bytes
        self._trusted = True
        """Whether delays are taken for queues."""
        self._since_ns: Instant = 0
        self._least_ns = 0
        """Least delay since `_since_ns`; 0: nothing was late since the last short round trip."""
        self._most_ns = 0

    def cleared(self) -> None:
        """A round trip was below the target, or a trim on the last hop has proved a queue: delays are queues again."""
        self._trusted = True
        self._least_ns = 0

    def receivers(self, now: Instant, delay: int, rtt_ns: int, cwnd_bytes: int) -> bool:
        """Whether the receiver's queue made a packet late by `delay` without a mark, at a window of `cwnd_bytes`."""
        if not self._answers or not self._trusted or delay > self._ceiling_ns:
            return False
        if cwnd_bytes > self._small_bytes or not self._least_ns:
            self._since_ns = now
            self._least_ns = self._most_ns = delay
            return True
        self._least_ns = min(self._least_ns, delay)
        self._most_ns = max(self._most_ns, delay)
        if now - self._since_ns > LONGER_RTTS * rtt_ns:
            self._trusted = STEADY_PARTS * (self._most_ns - self._least_ns) > self._least_ns
            self._least_ns = 0
        return self._trusted
