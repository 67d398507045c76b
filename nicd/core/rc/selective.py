"""The sending half of an RC QP with selective recovery (IRN): only what is lost is sent again.

Owns the order of transmissions and what is judged lost by it. A QP keeps to one path. So a packet is lost as soon as
one that left later has arrived, and so is a packet that was sent again. An acknowledgement says which packet caused
it; that one has arrived wherever the gap is.

Where nothing arrives any more, the oldest packet is sent again after `rc_rto_low_ns` or `rc_rto_high_ns`. The QP ends
when that has brought nothing for as long as a QP with go-back-N would have tried.

IRN (SIGCOMM'18) 3.1 (loss recovery), 3.2 (a window of one bandwidth-delay product), 5.2 (headers).
"""

from collections import deque
from typing import Final

from mrcfabric.units import NEVER, NS_PER_S, Instant
from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.wire.lrh_rc import LrhDataTemplate
from mrcfabric.wire.roce import RcDataTemplate
from mrcfabric.wire.roce_layout import NAK_SEQUENCE
from nicd.core.board import Board
from nicd.core.events import STATUS_REMOTE_INVALID, STATUS_RETRY_EXCEEDED, Retransmit
from nicd.core.rc.dcqcn import Pace
from nicd.core.rc.posted import Posted
from nicd.core.rc.rc_stats import RcStats
from nicd.core.rc.requestor import HALF_PSN, NACK, TIMEOUT, QpLike, Requestor

WINDOW_SPARE_PACKETS: Final = 4
"""A window holds more than one bandwidth-delay product by what waits for its acknowledgement, and by so many packets
that wait in ports on the way."""
TABLE_PACKETS_MIN: Final = 128
"""The smallest table of packets in flight."""
SHORT_PACKET_BYTES: Final = 1_024
"""Packets of so much payload still fill the window."""


def selective_window(rate_bps: int, base_rtt_ns: int, mtu_bytes: int, ack_every: int) -> int:
    """The window in bytes of a QP that has none set: a bandwidth-delay product, and what waits besides."""
    return rate_bps * base_rtt_ns // (8 * NS_PER_S) + (max(ack_every, 1) + WINDOW_SPARE_PACKETS) * mtu_bytes


def selective_packets(window_bytes: int, mtu_bytes: int) -> int:
    """How many packets such a QP may have in flight when nobody says it: a window of rather short ones.

    As a ring has places: rounded up to a power of two.
    """
    # IRN (SIGCOMM'18) 3.2 bounds packets, not bytes; 6: 110 packets of 1 KB take bitmaps of 128 bits.
    packets = -(-window_bytes // min(mtu_bytes, SHORT_PACKET_BYTES))
    return max(TABLE_PACKETS_MIN, 1 << (packets - 1).bit_length())


class SelectiveRequestor(Requestor):
    """One QP's sending half."""

    __slots__ = (
        "_few", "_give_up_ns", "_high_ns", "_index", "_lost", "_low_ns", "_newest", "_order", "_peak", "_progress_ns",
        "_sent",
    )  # fmt: skip

    def __init__(
        self, qp: QpLike, board: Board, rc: RcStats, template: RcDataTemplate | LrhDataTemplate, pace: Pace,
        psn_first: int,
        window_bytes: int,
    ) -> None:  # fmt: skip
        """As `Requestor`."""
        super().__init__(qp, board, rc, template, pace, psn_first, window_bytes)
        settings = self._board.settings
        self._low_ns = min(settings.rc_rto_low_ns, settings.rc_rto_high_ns)
        self._high_ns = settings.rc_rto_high_ns
        self._few = settings.rc_rto_low_packets
        self._index = 0
        """Number of transmissions."""
        self._newest = -1
        """The latest transmission that is known to have arrived."""
        self._sent: dict[int, tuple[int, Posted]] = {}
        """PSNs in flight: number of the transmission, and message."""
        self._order: deque[tuple[int, int]] = deque()
        """(number of a transmission, PSN), in order; some of them have arrived."""
        self._lost: dict[int, tuple[Posted, str]] = {}
        """PSNs to be sent again, in the order of their loss: message, and cause."""
        self._peak = 0
        self._progress_ns: Instant = 0
        """When an acknowledgement last moved the window, or there was none to come."""

    @property
    def tracked(self) -> int:
        """Packets that are in flight or lost."""
        return len(self._sent) + len(self._lost)

    @property
    def tracked_peak(self) -> int:
        """The most of them that there ever were."""
        return self._peak

    # -- sending

    def has_packet(self) -> bool:
        """Whether a packet is left to send that the window allows."""
        return bool(self._lost) or (self._next < self._limit and self._fits())

    def emit(self, now: Instant, port: int) -> bytearray:
        """Build the next packet: the oldest lost one, or a new one. Only after `has_packet`."""
        if self._lost:
            psn = next(iter(self._lost))
            message, self._again_cause = self._lost.pop(psn)
        else:
            psn = self._next
            message = self._queue[0]
            self._next = psn + 1
            if psn == message.psn_last:
                self._queue.popleft()
        if psn == self._una:
            self._since_ns = now
        self._sent[psn] = (self._index, message)
        # Only what is sent adds to them: a lost packet was in flight before.
        self._peak = max(self._peak, len(self._sent) + len(self._lost))
        self._order.append((self._index, psn))
        self._index += 1
        return self._build(now, psn, message, psn == message.psn_last or not self.has_packet())

    # -- acknowledgements

    def on_ack(self, now: Instant, psn24: int, syndrome: int, cause24: int) -> bool:
        """Take an acknowledgement or a NAK, caused by the packet `cause24`. False: nonsense, dropped."""
        una = self._una
        first = psn24 if syndrome >= NAK_SEQUENCE else psn24 + 1 & PSN_MASK
        ahead = (first - una) & PSN_MASK
        if syndrome == NAK_SEQUENCE:
            self._rc.naks_received += 1
        if ahead >= HALF_PSN:
            ahead = 0
        # A refusal that is late, or meant for an earlier QP of this number, must not end this one.
        if una + ahead > self._high or (syndrome > NAK_SEQUENCE and not self.was_sent(psn24)):
            return False
        cause = (cause24 - una) & PSN_MASK
        if cause < HALF_PSN and una + cause >= self._high:
            return False
        if cause < HALF_PSN and una + cause in self._sent:
            self._arrived(una + cause)
            self._since_ns = now
        if ahead:
            for psn in range(una, una + ahead):
                self._arrived(psn)
            self._progress_ns = now
            self._advance(now, una + ahead)
        if syndrome > NAK_SEQUENCE:
            self._qp.fail(now, STATUS_REMOTE_INVALID, "remote_invalid_request")
            return True
        self._judge(now)
        if self._messages and len(self._sent) < self._few:
            self._timer.set_by(self._since_ns + self._low_ns)
        return True

    def _arrived(self, psn: int) -> None:
        entry = self._sent.pop(psn, None)
        if entry is not None:
            self._newest = max(self._newest, entry[0])
        elif self._lost:
            self._lost.pop(psn, None)

    def _judge(self, now: Instant) -> None:
        """What left before something that has arrived, and has not arrived itself, is lost."""
        order, sent, newest = self._order, self._sent, self._newest
        count = 0
        while order and order[0][0] <= newest:
            index, psn = order.popleft()
            entry = sent.get(psn)
            if entry is not None and entry[0] == index:
                del sent[psn]
                self._lost[psn] = (entry[1], NACK)
                count += 1
        if count:
            self._tell_lost(now, NACK, count)

    def _tell_lost(self, now: Instant, cause: str, count: int) -> None:
        self._stats.packets_lost += count
        self._rc.passes_begun += 1
        self._board.tell(Retransmit(now, self._qp.qpn, cause, count))
        self._qp.window_moved()

    # -- silence

    def _arm(self, now: Instant) -> None:
        self._progress_ns = now
        self._timer.set(now + self._low_ns)

    def _on_timer(self, now: Instant) -> None:
        if not self._messages:
            return
        due_ns = self._since_ns + (self._low_ns if len(self._sent) < self._few else self._high_ns)
        if now < due_ns:
            self._timer.set(due_ns)
            return
        self._since_ns = now
        # What waits for its turn, its rate or a paused port has not been lost; what has no port has.
        if not self._sent and self._qp.ports:
            self._progress_ns = now
        elif self._timeout_ns < NEVER and now - self._progress_ns >= self._timeout_ns * (self._retry_cnt + 1):
            self._qp.fail(now, STATUS_RETRY_EXCEEDED, "retry_exceeded")
            return
        elif self._sent:
            self._stats.timeouts += 1
            self._resend_oldest(now)
        self._timer.set(now + self._low_ns)

    def _resend_oldest(self, now: Instant) -> None:
        psn, sent = min(self._sent), self._sent
        self._lost[psn] = (sent.pop(psn)[1], TIMEOUT)
        # Nobody waits for this transmission any more, and as long as nothing arrives nothing else would forget it.
        self._order = deque(one for one in self._order if one[1] in sent and sent[one[1]][0] == one[0])
        self._tell_lost(now, TIMEOUT, 1)

    def flush(self, now: Instant, first: str, rest: str) -> None:
        """As the base class."""
        self._sent.clear()
        self._order.clear()
        self._lost.clear()
        super().flush(now, first, rest)
