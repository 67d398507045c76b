"""Whether a late packet without a mark has met a full receiver, or only a path longer than configured.

Owns the verdict of one congestion context; `nscc` acts on it. The last hop of an MRC fabric does not mark (MRC 1.0 4),
so only delay tells of the receiver's queue. A delay beyond what that queue can hold comes from the path. So does a
smaller delay that stays, nearly constant, at a window of a packet or two: the queue of several senders would vary, and
would drain when all of them reduce their windows. The verdict holds until a round trip is short again, or a trim on the
last hop proves the queue.

Nor does one late packet tell of that queue where the target is a few packets long: sprayed packets meet by chance. Who
shares a receiver has a smaller window, and who shares a link of the fabric is marked. A window that fills its port
alone and is rarely marked shares neither, and waits until several packets in a row are late (`late_row`).

Nor does lateness tell of it where the delay of links varies (jitter). A queue changes little from packet to packet; if
round trips differ much from one to the next, what that explains comes off the delay (`late_jitter_times`). Only packets
that are less than two round trips apart are compared: a window below a packet hears so rarely of its queue that this
changes meanwhile. Nor does it hold where packets are often marked: paths of a plane whose queues differ have as
different round trips.
"""

from typing import TYPE_CHECKING, Final

from mrcfabric.units import NEVER, Instant

if TYPE_CHECKING:
    from nicd.core.settings import NicSettings

LONGER_RTTS: Final = 64
"""A delay that stays above the target for so many round trips may come from the path."""
STEADY_PARTS: Final = 8
"""It does come from the path if it has varied by less than one part in so many."""
_SMALL_PACKETS: Final = 2
"""A window of at most so many packets fills no queue."""
_FULL_QUARTERS: Final = 5
"""A window fills its port alone from so many quarters of a bandwidth-delay product on: two that share a receiver, whose
queue stands at the target, have 0.9 of one each."""
_WHOLE: Final = 1024
_RARELY: Final = 300
"""It is rarely marked if fewer of 1024 round trips are."""
_SMOOTH_SHIFT: Final = 4
"""A round trip moves this share by 1/16 of the difference."""
_JITTER_SHIFT: Final = 6
"""A round trip moves the median difference of two in a row by 1/64 of the target."""
_JITTER_TARGETS: Final = 2
_JITTER_PACKETS: Final = 40
"""Differences that explain no more than so many targets, or than the time of so many packets at the plane's rate, are
those of sprayed packets that meet by chance."""
_APART_RTTS: Final = 2
"""What is heard of less than once in so many round trips is not compared for jitter."""


class Lateness:
    """One context's late round trips without a mark."""

    __slots__ = (
        "_answers", "_apart_ns", "_before_ns", "_ceiling_ns", "_chance_ns", "_differ_ns", "_full_bytes", "_heard_ns",
        "_jitter_times", "_least_ns", "_marked", "_most_ns", "_mtu_bytes", "_row", "_row_least",
        "_since_ns", "_small_bytes", "_trusted",
    )  # fmt: skip

    def __init__(self, settings: "NicSettings") -> None:
        self._answers = settings.late_is_congestion
        self._ceiling_ns = settings.late_delay_ns_max
        self._small_bytes = _SMALL_PACKETS * settings.mtu_bytes
        self._full_bytes = NEVER
        self._mtu_bytes = settings.mtu_bytes
        self._jitter_times = settings.late_jitter_times if self._answers else 0
        self._chance_ns = 0
        """By how much sprayed packets are late that meet by chance, at the plane's rate."""
        self._row_least = settings.late_row
        self._row = 0
        """Round trips in a row that were late and not marked."""
        self._marked = 0
        """The share of round trips that were marked, of 1024."""
        self._before_ns = 0
        """The delay of the round trip before."""
        self._heard_ns: Instant = 0
        """When that was."""
        self._apart_ns = NEVER
        self._differ_ns = 0
        """By how much two round trips in a row differ: half of them by more."""
        self._trusted = True
        """Whether delays are taken for queues."""
        self._since_ns: Instant = 0
        self._least_ns = 0
        """Least delay since `_since_ns`; 0: nothing was late since the last short round trip."""
        self._most_ns = 0

    def measured(self, bdp_bytes: int, rtt_ns: int) -> None:
        """The bandwidth-delay product of the context, for a round trip of `rtt_ns`, is known anew."""
        self._apart_ns = _APART_RTTS * rtt_ns
        self._full_bytes = bdp_bytes * _FULL_QUARTERS // 4
        self._chance_ns = _JITTER_PACKETS * self._mtu_bytes * rtt_ns // max(1, bdp_bytes)

    def queued(self, now: Instant, delay: int, marked: bool, target: int) -> int:
        """A round trip was measured, `delay` above the base RTT; returns what of that is not jitter."""
        step_ns = target >> _JITTER_SHIFT
        if now - self._heard_ns < self._apart_ns:
            differs = abs(delay - self._before_ns) > self._differ_ns
            self._differ_ns = self._differ_ns + step_ns if differs else max(0, self._differ_ns - step_ns)
        self._before_ns = delay
        self._heard_ns = now
        self._marked += ((_WHOLE if marked else 0) - self._marked) >> _SMOOTH_SHIFT
        jitter_ns = self._jitter_times * self._differ_ns - max(_JITTER_TARGETS * target, self._chance_ns)
        return max(0, delay - jitter_ns) if jitter_ns > 0 and self._marked < _RARELY else delay

    def cleared(self) -> None:
        """A round trip was below the target, or a trim on the last hop has proved a queue: delays are queues again."""
        self._trusted = True
        self._least_ns = 0
        self._row = 0

    def receivers(self, now: Instant, delay: int, rtt_ns: int, cwnd_bytes: int) -> bool:
        """Whether the receiver's queue made a packet late by `delay` without a mark, at a window of `cwnd_bytes`."""
        if not self._answers or not self._trusted or delay > self._ceiling_ns:
            return False
        self._row += 1
        if self._row < self._row_least and cwnd_bytes >= self._full_bytes and self._marked < _RARELY:
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
