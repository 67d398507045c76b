"""What an initiator does about loss and silence: it judges packets lost, probes, asks for credit, and gives up.

Owns the timer of a QP's sending half and the retry budget. A packet is lost when one that left enough later has
arrived, when the answer to a probe does not show it, or when nothing was heard of it for an RTO, which doubles with
each silence beyond the linear retries. In an ordered context all behind a lost packet goes again too. A loss that a
full queue explains blames no entropy. UEC PDS (probe, retries), UEC CMS (inferred loss).
"""

from typing import TYPE_CHECKING, Final, Protocol

from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.uet_layout import (
    BITMAP_PSNS,
    CONTROL_CREDIT_REQUEST,
    CONTROL_PROBE,
    PSN_MASK_UET,
)
from nicd.core.board import Board
from nicd.core.events import STATUS_RETRY_EXCEEDED, Retransmit
from nicd.core.timers import Timer
from nicd.core.uet.outstanding import IN_FLIGHT, Sent
from nicd.core.uet.patience import UetPatience
from nicd.core.uet.planes import Planes
from nicd.core.uet.uet_stats import UetStats

if TYPE_CHECKING:
    from nicd.core.uet.initiator import Initiator

DOUBLINGS_MAX: Final = 25
FOR_EVER: Final = 25
"""So many exponential retries mean that a QP never gives up."""


class LinkLike(Protocol):
    """What the parts of a QP's sending half ask of it."""

    qpn: int
    peer_qpn: int
    pdcid: int
    """Of the context that the QP opened; 0: none is open."""

    def begin(self) -> int:
        """Open a context, or open it anew; returns its PDCID."""
        ...

    def window_moved(self) -> None:
        """A packet may leave now that could not before."""
        ...

    def control(self, now: Instant, kind: int, psn: int, payload: int, opaque: int) -> None:
        """Send a control packet on the context."""
        ...

    def fail(self, now: Instant, status: str, reason: str) -> None:
        """The QP goes to ERROR: its oldest message ends with `status`."""
        ...

    def ask_credit(self, now: Instant) -> None:
        """Packets wait: if no packet can carry it, say by one of its own how much credit is wanted."""
        ...

    def credit_wanted(self) -> int | None:
        """Up to where credit is wanted, if packets wait for nothing else; None: they do not."""
        ...


class Silence:
    """One QP's answer to loss and silence."""

    __slots__ = (
        "_asked_ns", "_base_ns", "_board", "_budget", "_first", "_heard_ns", "_initiator", "_linear", "_link",
        "_opaque", "_patience", "_planes", "_reorder_packets", "_retry_trims", "_rto_ns", "_tail_ns", "_uet",
        "_unanswered", "timer",
    )  # fmt: skip

    def __init__(self, link: LinkLike, board: Board, initiator: "Initiator", planes: Planes, uet: UetStats) -> None:
        settings = board.settings
        self._link = link
        self._board = board
        self._initiator = initiator
        self._planes = planes
        self._uet = uet
        self._base_ns = settings.base_rtt_ns
        self._patience = UetPatience(settings.uet_reorder_ns, settings.base_rtt_ns)
        self._reorder_packets = settings.reorder_packets
        self._tail_ns = settings.tail_probe_ns
        self._rto_ns = settings.rto_ns
        self._retry_trims = settings.retry_trims
        self._linear = self._budget = 0
        self.set_timers(settings.rto_ns, settings.retry_linear, settings.retry_exponential)
        self._first = initiator.table.windows.cwnd_bytes // settings.mtu_bytes
        """Packets of the first window: they left before anybody could know how full queues are."""
        self._heard_ns: Instant = -1
        self._asked_ns: Instant = -1
        """When the last question was sent: a probe, or a request for credit."""
        self._opaque = 0
        self._unanswered = 0
        self.timer = Timer(board.timers, self._on_timer)

    def set_timers(self, rto_ns: int, linear: int, exponential: int) -> None:
        """The QP becomes RTS with these."""
        self._rto_ns = rto_ns
        self._linear = linear
        self._budget = linear + exponential if exponential < FOR_EVER else 1 << 60

    def begin(self, now: Instant) -> None:
        """Work has come, or a packet leaves."""
        if self.timer.at_ns == NEVER:
            self.timer.set(now + self._tail_ns)

    def heard(self, now: Instant) -> None:
        """An answer of any kind has come."""
        self._heard_ns = now
        self._unanswered = 0
        self._patience.heard(now)

    def came(self, now: Instant, sent: Sent) -> None:
        """A transmission has come: others that were sent so much later had come before it."""
        late_ns = self._initiator.table.acked_sent_ns - sent.sent_ns
        if sent.state != IN_FLIGHT:
            # It was judged lost, possibly by the time alone.
            late_ns = max(late_ns, now - sent.sent_ns - self._round_ns(sent))
        if late_ns > 0:
            self._patience.late(now, late_ns)

    # -- loss

    def judge(self, now: Instant) -> None:
        """An acknowledgement has come: what left long before a packet that has arrived is lost."""
        table = self._initiator.table
        self._accuse(now, table.gaps(table.acked_sent_ns - self._patience.reorder_ns, self._reorder_packets), "gap")

    def answered(self, now: Instant, opaque: int, base: int, bitmap: int) -> None:
        """The answer to a probe: of 64 PSNs from `base` on, what it does not show and left long before is lost."""
        if opaque != self._opaque & 0xFFFF:
            return
        latest_ns = self._asked_ns - self._patience.reorder_ns
        by_psn = self._initiator.table.by_psn
        gone = [
            sent for sent in (by_psn.get(base + place) for place in range(BITMAP_PSNS))
            if sent is not None and sent.state == IN_FLIGHT and not sent.tries and sent.sent_ns <= latest_ns
        ]  # fmt: skip
        self._accuse(now, gone, "gap")

    def _accuse(self, now: Instant, gone: list[Sent], cause: str) -> None:
        """Packets are lost without a word: blame their entropies, if no full queue explains it."""
        windows = self._initiator.table.windows
        for sent in gone:
            full = windows.is_crowded(sent.plane, sent.sent_ns, sent.index <= self._first)
            windows.on_loss(now, sent.plane, sent.size, False, full)
            if not full:
                self._planes.lost(now, sent)
        self.lose(now, gone, cause)

    def lose(self, now: Instant, gone: list[Sent], cause: str) -> None:
        """These packets are lost; in an ordered context so is everything behind the first of them."""
        if not gone:
            return
        table = self._initiator.table
        blamed = set(gone)
        if self._initiator.ordered:
            first = min(gone, key=lambda sent: sent.psn)
            # What was behind it may well have arrived, and was dropped there: only the first has used up a retry.
            blamed = {first}
            gone = [sent for sent in table.in_flight() if sent.psn >= first.psn and sent is not first]
            gone.insert(0, first)
        exhausted = False
        for sent in gone:
            table.lose(now, sent, cause)
            if sent not in blamed:
                continue
            sent.silences += cause == "timeout"
            # A trim shows that the target lives and that a queue lacked room.
            if cause == "trim" and sent.trims < self._retry_trims:
                sent.trims += 1
                continue
            sent.blames += 1
            exhausted |= sent.blames > self._budget
        self._board.tell(Retransmit(now, self._link.qpn, cause, len(gone)))
        if exhausted:
            self._link.fail(now, STATUS_RETRY_EXCEEDED, "retry_counter_exceeded")
        else:
            self._link.window_moved()
            self._link.ask_credit(now)

    # -- silence

    def _on_timer(self, now: Instant) -> None:
        initiator = self._initiator
        if initiator.idle:
            return
        table = initiator.table
        while (slow := table.overtaken(self._reorder_packets)) is not None and now >= self._overdue_ns(slow):
            self._accuse(now, table.gaps(slow.sent_ns, self._reorder_packets), "gap")
        overdue = [sent for sent in table.in_flight() if now >= self._deadline(sent)]
        if overdue:
            self._board.stats.timeouts += 1
            self._asked_ns = now
            self._accuse(now, overdue, "timeout")
        if not initiator.idle:
            self._watch(now)

    def _round_ns(self, sent: Sent) -> int:
        """A round trip on the plane of `sent` without any queue, as far as is known."""
        return self._base_ns + self._initiator.table.windows.extra_ns(sent.plane)

    def _overdue_ns(self, slow: Sent) -> Instant:
        """When a packet that others have overtaken is lost, if no acknowledgement says so before."""
        return slow.sent_ns + self._round_ns(slow) + self._patience.reorder_ns

    def _deadline(self, sent: Sent) -> Instant:
        extra_ns = self._round_ns(sent) - self._base_ns + self._patience.raised_ns
        return sent.sent_ns + extra_ns + (self._rto_ns << min(max(0, sent.silences - self._linear), DOUBLINGS_MAX))

    def _watch(self, now: Instant) -> None:
        """Ask what has arrived, or for credit, if the silence has lasted long enough; set the timer."""
        table = self._initiator.table
        oldest = table.oldest()
        wait_ns = self._tail_ns << min(max(0, self._unanswered - self._linear), DOUBLINGS_MAX)
        since_ns = max(self._heard_ns, self._asked_ns, -1 if oldest is None else oldest.sent_ns)
        wanted = self._link.credit_wanted() if oldest is None else None
        stuck = oldest is None and wanted is None
        if stuck and self._planes.usable(self._board.ports.carrier):
            # What waits leaves as soon as window or credit let it, which wakes the QP; the packet sets the timer.
            return
        probes = oldest is not None and self._asked_ns <= oldest.sent_ns
        if (probes or wanted is not None or stuck) and now >= since_ns + wait_ns:
            if self._unanswered > self._budget:
                self._link.fail(now, STATUS_RETRY_EXCEEDED, "retry_counter_exceeded")
                return
            if stuck:
                # No port has carrier: a question would not leave either.
                self._unanswered += 1
                self._asked_ns = now
            else:
                self._ask(now, wanted)
            since_ns, probes = now, False
        soonest = since_ns + wait_ns if probes or oldest is None else NEVER
        if oldest is not None:
            soonest = min(soonest, *(self._deadline(sent) for sent in table.in_flight()))
            slow = table.overtaken(self._reorder_packets)
            if slow is not None:
                soonest = min(soonest, self._overdue_ns(slow))
        self.timer.set_by(max(soonest, now + 1))

    def _ask(self, now: Instant, wanted: int | None) -> None:
        self._unanswered += 1
        self._asked_ns = now
        first = (self._initiator.table.cack + 1) & PSN_MASK_UET
        if wanted is not None:
            self._uet.credit_requests += 1
            self._link.control(now, CONTROL_CREDIT_REQUEST, first, wanted, 0)
            return
        self._opaque += 1
        self._board.stats.probes_sent += 1
        self._board.stats.tail_probes += 1
        self._link.control(now, CONTROL_PROBE, first, first, self._opaque & 0xFFFF)
