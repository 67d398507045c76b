"""The penalty and restore bits in a receiver's SACKs, by which it asks senders to reduce or restore their windows.

Owns when a receiver penalises which sender, and by how much; `nscc` is the sender's side. The texts say what the bits
do and leave to the receiver when to set them, so this is a policy with a name (`receiver_penalty`), off by default:

    off      never
    incast   while more than `penalty_senders` peers send, each new one costs all of them a round trip at the share that
             is left to each; when there are few again, windows are restored
    ooo      a QP that holds more than `penalty_ooo_packets` out of order halves its sender's window per round trip,
             until it holds half as many; then the window is restored

MRC 1.0 4, UEC CMS (rcv_cwnd_pen, restore_cwnd).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from mrcfabric.units import Instant
from nicd.core.congestion.window import RESTORE

if TYPE_CHECKING:
    from nicd.core.settings import NicSettings

PENALTY_MAX: Final = 127
_HALVES: Final = 64
"""UEC CMS: this much for one round trip halves a window."""
_ACTIVE_RTTS: Final = 2
"""A peer counts as sending while our last SACK to it is at most this many base RTTs old."""


class Penalty(Protocol):
    """What a NIC's responders call for every SACK."""

    def byte(self, now: Instant, peer: int, qpn: int, ooo_count: int) -> int:
        """The penalty byte of a SACK to `peer`: restore_cwnd in the top bit, the penalty 0..127 below.

        `qpn` is our QP, which holds `ooo_count` packets out of order.
        """
        ...


class IncastPenalty:
    """Penalises all peers while too many send at once. Its tables are bounded by the number of peers."""

    __slots__ = ("_active", "_limit", "_most", "_rtt_ns", "_until", "_verdict")

    def __init__(self, settings: "NicSettings") -> None:
        self._limit = settings.penalty_senders
        self._rtt_ns = settings.base_rtt_ns
        self._active: dict[int, Instant] = {}
        """Peer -> when we last sent it a SACK; the least recent first."""
        self._most = 0
        """Most senders at once in this incast; 0: there is no incast."""
        self._verdict = 0
        self._until: dict[int, Instant] = {}
        """Peer -> until when its SACKs carry the verdict."""

    def byte(self, now: Instant, peer: int, qpn: int, ooo_count: int) -> int:
        """The byte follows from the number of peers that send."""
        active = self._active
        active.pop(peer, None)
        active[peer] = now
        oldest_ns = now - _ACTIVE_RTTS * self._rtt_ns
        while active[first := next(iter(active))] < oldest_ns:
            del active[first]
        senders = len(active)
        if senders > self._limit:
            if senders > self._most:
                # Each sender keeps limit / senders of its window: the rest of 128 is the penalty for one round trip.
                self._begin(min(PENALTY_MAX, 128 * (senders - self._limit) // senders), senders)
        elif self._most:
            self._begin(RESTORE, 0)
        if not self._verdict:
            return 0
        return self._verdict if now < self._until.setdefault(peer, now + self._rtt_ns) else 0

    def _begin(self, verdict: int, most: int) -> None:
        self._verdict = verdict
        self._most = most
        self._until.clear()


class OutOfOrderPenalty:
    """Penalises the sender of a QP that tracks too many packets. Its tables are bounded by the number of QPs."""

    __slots__ = ("_held", "_limit", "_restore", "_rtt_ns")

    def __init__(self, settings: "NicSettings") -> None:
        self._limit = settings.penalty_ooo_packets
        self._rtt_ns = settings.base_rtt_ns
        self._held: set[int] = set()
        self._restore: dict[int, Instant] = {}
        """QP -> until when its SACKs tell the sender to restore its window."""

    def byte(self, now: Instant, peer: int, qpn: int, ooo_count: int) -> int:
        """The byte follows from the number of packets that the QP holds out of order."""
        if ooo_count > self._limit:
            self._held.add(qpn)
            self._restore.pop(qpn, None)
            return _HALVES
        if qpn in self._held:
            if 2 * ooo_count > self._limit:
                return _HALVES
            self._held.discard(qpn)
            self._restore[qpn] = now + self._rtt_ns
        if self._restore:
            until = self._restore.get(qpn)
            if until is not None:
                if now < until:
                    return RESTORE
                del self._restore[qpn]
        return 0


POLICIES: Final[dict[str, Callable[["NicSettings"], Penalty] | None]] = {
    "off": None,
    "incast": IncastPenalty,
    "ooo": OutOfOrderPenalty,
}
"""Values of `receiver_penalty`."""


def penalty_of(settings: "NicSettings") -> Penalty | None:
    """The policy that the settings name; None: it penalises nobody."""
    policy = POLICIES[settings.receiver_penalty]
    return None if policy is None else policy(settings)
