"""What a requestor does about loss and silence: it accuses EVs, queues packets again, probes, and gives up.

Owns the timer of a QP's sending half (tail probe, RTO, grace after a port went down) and the retry budget. `inflight`
judges by time and order which transmissions are lost, the requestor sends them again, and `ev_profile` changes the
state of the accused EV.

MRC 1.0 section 3: NACKs and timeouts use up one budget; a packet sent again starts again at the plain timer. Trims have
an allowance of their own (`retry_trims`), and so have losses that later packets show or a full queue explains while the
peer answers. A loss that a full queue explains accuses no EV (`doubts`). These are deliberate differences, without
which a long incast ends QPs and retires EVs in a healthy fabric.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.layout import PSN_MASK
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.ev_state import EvTrigger
from nicd.core.events import STATUS_RETRY_EXCEEDED, Retransmit
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.doubt_probes import DoubtProbes
from nicd.core.mrc.doubts import Doubts
from nicd.core.mrc.ev_profile import EvProfile
from nicd.core.mrc.inflight import DOUBLINGS_MAX, InflightTable
from nicd.core.mrc.limits import RETRY_EXPONENTIAL_MAX
from nicd.core.mrc.sent import INFLIGHT, Sent
from nicd.core.queue_pair import Connection
from nicd.core.timers import Timer

_SEVERAL: Final = 3
"""When so many packets are in flight and none is heard of, their EVs are not the cause."""
_SILENCES: Final = 1
"""That holds while they timed out no more often than this, if no packet has arrived since the QP began."""
_DRAINED_PARTS: Final = 5
"""A queue that was full when a packet came may be empty for one that left later, so many half base RTTs after the first
had left: a last hop holds one and a half of them."""
_TRIES_IN_PLACE: Final = 2
"""A packet that was sent again so often may take another plane at its next loss."""
_ASKED: Final = ("trim", "nack")
"""Causes of a loss that a NACK told us: the plane works."""


class QpLink(Connection):
    """What the parts of a QP call on the QP as a whole. A class, as `Sender`: compiled code calls it faster."""

    __slots__ = ("planes",)

    planes: int
    """Bit p: plane p can carry data of this QP."""

    def window_moved(self) -> None:
        """A packet may leave now that could not before."""
        raise NotImplementedError

    def ask(self, now: Instant) -> None:
        """Send a probe: its answer tells what has arrived."""
        raise NotImplementedError

    def heard(self, now: Instant) -> None:
        """The peer lives, and so do a path to it and a path back."""
        raise NotImplementedError

    def fragile(self, now: Instant) -> bool:
        """Whether no path is known to live, or the first was found only a moment ago."""
        raise NotImplementedError

    def ask_path(self, now: Instant, index: int, answered: Callable[[Instant, int], None]) -> bool:
        """Probe the path of an EV, past the queues of data; `answered` is told (now, port). False: it cannot."""
        raise NotImplementedError

    def path_dead(self, now: Instant, index: int) -> None:
        """The path of this EV is dead, and another one of its plane lives."""
        raise NotImplementedError

    def fail(self, now: Instant, status: str, reason: str) -> None:
        """The QP goes to ERROR; its oldest message ends with `status`."""
        raise NotImplementedError


class Recovery:
    """One QP's answer to loss and silence.

    `unfinished` tells how many messages are kept, `to_send` whether a packet waits for a window or a port.
    """

    __slots__ = (
        "_asked_ns", "_base_ns", "_board", "_budget", "_dead", "_doubts", "_drained_ns", "_exhausted", "_first",
        "_grace_ns", "_heard_ns", "_inflight", "_profile", "_qp", "_quick_ns", "_retry_linear", "_retry_trims",
        "_slow_ns", "_strand_ns", "_tail_ns", "_to_send", "_unanswered", "_unfinished", "_windows", "doubt_probes",
        "last_sent_ns", "timer",
    )  # fmt: skip

    def __init__(
        self,
        qp: QpLink,
        board: MrcBoard,
        profile: EvProfile,
        inflight: InflightTable,
        windows: PlaneWindows,
        unfinished: Callable[[], int],
        to_send: Callable[[], bool],
    ) -> None:
        settings = board.settings
        self._qp = qp
        self._board = board
        self._profile = profile
        self._inflight = inflight
        profile.on_dead = self._strand
        self._windows = windows
        self._doubts = inflight.doubts = Doubts(settings.loss_spared, profile.plane, profile.path)
        self.doubt_probes = DoubtProbes(
            board.timers, settings.base_rtt_ns, settings.doubt_probes, profile.plane, profile.path, profile.decks,
            profile.records.lag_of, qp.ask_path, qp.path_dead,
        )  # fmt: skip
        self._unfinished = unfinished
        self._to_send = to_send
        self.set_retries(settings.retry_linear, settings.retry_exponential)
        self._retry_trims = settings.retry_trims
        self._first = windows.cwnd_bytes // settings.mtu_bytes
        """Packets of the first window: the QP sent them before it could know how full queues are."""
        self._tail_ns = settings.tail_probe_ns
        self._base_ns = settings.base_rtt_ns
        """An acknowledgement comes no sooner than this after its packet has left."""
        self._quick_ns = settings.base_rtt_ns + settings.base_rtt_ns * 3 // 4
        """A packet that took less time has met no full queue."""
        self._slow_ns = self._quick_ns + settings.sack_delay_ns
        """One that took as long has, whatever its acknowledgement waited for."""
        self._drained_ns = settings.base_rtt_ns * _DRAINED_PARTS // 2
        self._grace_ns = settings.port_down_grace_ns
        self._dead: dict[int, tuple[Instant, Instant]] = {}
        """Record of a dead path -> when it was found dead, and when the latest packet left that had arrived by it."""
        self._strand_ns: Instant = NEVER
        """When to judge lost what was sent on a plane that went down; NEVER: no plane did."""
        self._heard_ns: Instant = -1
        self._asked_ns: Instant = -1
        self.last_sent_ns: Instant = -1
        self._unanswered = 0
        self._exhausted = False
        self.timer = Timer(board.timers, self._on_timer)

    def set_retries(self, linear: int, exponential: int) -> None:
        """Set how often a packet is sent again before the QP fails."""
        self._retry_linear = linear
        # MRC 1.0, controller API: the largest exponential count means for ever.
        self._budget = linear + exponential if exponential < RETRY_EXPONENTIAL_MAX else 1 << 60

    # -- the course of things

    def begin(self, now: Instant) -> None:
        """Start the timer: there is work again, or a packet is in flight and the timer is not set."""
        self._asked_ns = now
        self.timer.set_by(now + self._tail_ns)

    def heard(self, now: Instant) -> None:
        """An acknowledgement has come: the peer lives."""
        self._heard_ns = now
        if self._unanswered:
            self._unanswered = 0
            self._qp.heard(now)

    # -- loss

    def shuns(self, plane: int) -> bool:
        """Whether the oldest lost packet should wait for another plane, so that a new packet takes this one.

        A loss makes room in the window of its plane. While the windows of the other planes are full, only the plane
        that lost the packet has room. If that plane is dead, the packet would be lost there until its retries run out.
        """
        lost = self._inflight.next_lost()
        if lost.plane != plane or lost.cause in _ASKED or not self._profile.resends_elsewhere:
            return False
        # Only from its third loss on: a plane that has become longer loses nothing, and its packets are only late.
        if lost.tries < _TRIES_IN_PLACE:
            return False
        # Shun a plane only while others deliver and it does not: while all are silent, any may be the one that lives.
        delivered_ns = self._inflight.windows.delivered_ns
        if delivered_ns[plane] > lost.sent_ns:
            return False
        others = self._qp.planes & ~(1 << plane)
        return any(others >> one & 1 and at_ns > lost.sent_ns for one, at_ns in enumerate(delivered_ns))

    def on_nack(self, now: Instant, psn24: int, cause: str, trigger: EvTrigger | None, ev: int) -> None:
        """The peer asks for one PSN again. `trigger` is what that means for the EV, `ev` the EV that the NACK names."""
        profile = self._profile
        index = profile.index_of.get(ev)
        if trigger is not None and index is not None:
            profile.feedback(now, index, trigger)
        self.heard(now)
        first = self._inflight.cack + 1
        psn = first + ((psn24 - first) & PSN_MASK)
        sent = self._inflight.by_psn.get(psn)
        # The packet was sent again already on another EV: this NACK is for an earlier transmission.
        if sent is None or sent.state != INFLIGHT or sent.ev != index:
            return
        if cause == "trim":
            if self._doubts.open:
                self._doubts.delivered(sent.ev)
            last_hop = trigger == EvTrigger.TRIM_LASTHOP
            shares = profile.decks[sent.plane].shares
            if shares is not None and not last_hop:
                shares.trimmed(now, sent.ev, sent.sent_ns)
            self._windows.on_trim(now, sent.plane, sent.size, last_hop)
        self._lose(now, sent, cause)
        self._tell_lost(now, {cause: 1})

    def accuse(self, now: Instant, gone: list[Sent], trigger: EvTrigger) -> None:
        """Packets are lost without a trim: accuse their EVs.

        An EV is spared if its plane went down meanwhile, or if a full queue explains the loss.
        """
        profile = self._profile
        # If several packets on different EVs all time out, the cause is what they share, not an EV. Where no packet
        # has ever arrived, an answered probe does not disprove that: a queue may have drained meanwhile.
        several = trigger == EvTrigger.TIMEOUT and len(self._inflight.by_psn) >= _SEVERAL
        new, heard_ns = self._inflight.acked_sent_ns < 0, self._heard_ns
        lost: dict[str, int] = {}
        for sent in gone:
            cause = trigger.name.lower()
            down = sent.sent_ns <= profile.down_ns[profile.plane[sent.ev]]
            if down:
                cause = "port_down"
            lost[cause] = lost.get(cause, 0) + 1
            # A queue that drops also delays what it lets through. So a plane without delay lost the packet on its path.
            due_ns = sent.sent_ns + self._base_ns
            silent = several and (sent.silences <= _SILENCES if new else not sent.silences and heard_ns < due_ns)
            full = not down and (silent or self._is_full(now, sent))
            self._windows.on_loss(now, sent.plane, sent.size, down, full, sent.index < self._first)
            spared = self._doubts.spare(sent.ev) if full else 0
            if not spared:
                profile.feedback(now, sent.ev, trigger, sent.sent_ns)
            elif self._heard_ns > sent.sent_ns:
                # While the peer is not heard at all, no path of it is worse than the others.
                self.doubt_probes.doubt(now, sent.ev, spared)
            self._lose(now, sent, cause, full)
        self._tell_lost(now, lost)

    def _strand(self, now: Instant, plane: int, way: int) -> None:
        """A path is dead: what is in flight on it is lost.

        Not where its plane is crowded: acknowledgements may take any time there, and so many losses at once make room
        in the window for as many packets, all of which go to the paths that are left.
        """
        if not self._windows.is_crowded(plane, now - self._base_ns, False):
            self._dead[way] = (now, self._profile.records.delivered_ns[way])
            self.timer.set_by(now + 1)

    def _leave_behind(self, now: Instant) -> None:
        """Judge lost what is in flight on dead paths, once it could have been acknowledged."""
        delivered_ns, count = self._profile.records.delivered_ns, 0
        for way, (died_ns, known_ns) in list(self._dead.items()):
            lost: list[Sent] = []
            # If a packet has arrived by it since, the path lives.
            if delivered_ns[way] == known_ns:
                lost = self._inflight.stranded(way, min(died_ns, now - self._quick_ns))
            for sent in lost:
                self._windows.on_loss(now, sent.plane, sent.size)
                self._lose(now, sent, "gap")
            count += len(lost)
            if delivered_ns[way] > known_ns or now >= died_ns + self._quick_ns:
                del self._dead[way]
        if count:
            self._tell_lost(now, {"gap": count})

    def _is_full(self, now: Instant, sent: Sent) -> bool:
        """Whether a full queue explains the loss."""
        # It would have delayed the packet that overtook the lost one, unless that left much later.
        passed_ns = sent.passed_ns
        if passed_ns:
            records = self._profile.records
            if passed_ns - records.lag_ns[records.way[sent.ev]] >= self._slow_ns:
                return True
            if passed_ns < self._quick_ns and now - sent.sent_ns < self._drained_ns:
                return False
        return self._windows.is_crowded(sent.plane, sent.sent_ns, sent.index < self._first)

    def plane_down(self, now: Instant) -> None:
        """A plane went down at one end: packets still in flight on it after a grace are lost."""
        if self._unfinished():
            self._strand_ns = now + self._grace_ns
            self.timer.set_by(self._strand_ns)

    def _give_up_stranded(self, now: Instant) -> None:
        self._strand_ns = NEVER
        profile = self._profile
        stranded = self._inflight.sent_before(profile.down_ns, profile.plane)
        if stranded:
            self.accuse(now, stranded, EvTrigger.GAP)

    def _lose(self, now: Instant, sent: Sent, cause: str, full: bool = False) -> None:
        self._inflight.lose(now, sent, cause)
        # MRC 1.0 section 3: NACKs and timeouts use one budget. A trim shows that the receiver lives and a queue lacked
        # room. So trims have an allowance of their own, and use the budget only beyond it. Where switches drop, losses
        # show the same if the peer was heard of since the packet left, and later packets came or a queue was full.
        if cause == "trim" or (self._heard_ns > sent.sent_ns and (full or cause == "gap")):
            sent.spared += 1
        if sent.tries + 1 - min(sent.spared, self._retry_trims) > self._budget:
            self._exhausted = True

    def _tell_lost(self, now: Instant, lost: dict[str, int]) -> None:
        for cause, count in lost.items():
            self._board.tell(Retransmit(now, self._qp.qpn, cause, count))
        if self._exhausted:
            self._give_up(now)
        else:
            self._qp.window_moved()

    def _give_up(self, now: Instant) -> None:
        self._qp.fail(now, STATUS_RETRY_EXCEEDED, "retry_counter_exceeded")

    # -- silence

    def _on_timer(self, now: Instant) -> None:
        if not self._unfinished():
            return
        if now >= self._strand_ns:
            self._give_up_stranded(now)
        if self._dead:
            self._leave_behind(now)
        gaps = self._inflight.silent_gaps(now)
        if gaps:
            # As after a timeout: the retransmission counts as the probe.
            self._asked_ns = now
            self.accuse(now, gaps, EvTrigger.GAP)
        overdue = self._inflight.overdue(now)
        if overdue:
            self._board.stats.timeouts += 1
            # A retransmission gets a SACK at once, so it counts as the probe.
            self._asked_ns = now
            self.accuse(now, overdue, EvTrigger.TIMEOUT)
        if self._unfinished():
            self._watch(now)

    def _watch(self, now: Instant) -> None:
        """Send a probe if silence has lasted long enough, and set the timer."""
        oldest = self._inflight.oldest()
        wait_ns = self._tail_ns << min(max(0, self._unanswered - self._retry_linear), DOUBLINGS_MAX)
        if self._qp.fragile(now):
            wait_ns = min(wait_ns, self._tail_ns >> 1)
        # Silence counts from the last acknowledgement or from the sending of the oldest packet in flight (with none,
        # of the last packet). While others are acknowledged, the packets that overtook it decide whether it is lost.
        since_ns = max(self._heard_ns, self.last_sent_ns if oldest is None else oldest.sent_ns)
        asked = oldest is not None and self._asked_ns > self.last_sent_ns
        since_ns = max(since_ns, self._asked_ns)
        # With none in flight and more to send there is nothing to ask: windows and ports decide when the next leaves.
        if not asked and oldest is None and self._to_send():
            asked = True
        if not asked and now >= since_ns + wait_ns:
            # Silence is longer than every ordinary round trip: ask what has arrived. Only unanswered probes use up
            # the budget: a QP with nothing in flight may be silent because others use the window.
            if self._unanswered > self._budget:
                self._give_up(now)
                return
            self._unanswered += 1
            self._asked_ns = since_ns = now
            asked = oldest is not None
            self._qp.ask(now)
        # One probe for all that is in flight; the search goes on where it has no answer, and the RTO judges.
        soonest = since_ns + wait_ns
        if asked and soonest <= now:
            soonest = NEVER
        if oldest is not None:
            soonest = min(soonest, self._inflight.next_deadline(), self._inflight.next_gap())
        soonest = min(soonest, self._strand_ns)
        if self._dead:
            soonest = min(soonest, min(died_ns for died_ns, _ in self._dead.values()) + self._quick_ns)
        self.timer.set_by(max(soonest, now + 1))
