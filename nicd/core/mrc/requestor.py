"""The sending half of a QP: it cuts messages into packets, and completes messages when they are acknowledged.

Owns segmentation, PSNs, the peer's tracking window and retransmission. `inflight` knows which packets are out or lost,
`recovery` acts on loss and silence, `ev_profile` keeps the states of EVs, `probe` probes them, `window` has the policy,
and the scheduler orders QPs and ports. PSNs are unbounded integers inside; 24 bits of them travel.

MRC 1.0 section 3: a SACK frees packets, only a transport ACK completes messages; a clear bit of a bitmap says nothing.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from mrcfabric.plane_ports import PlanePorts
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.layout import (
    PSN_MASK,
    SYNDROME_ACK,
    WRITE_FIRST,
    WRITE_LAST,
    WRITE_LAST_IMM,
    WRITE_MIDDLE,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
)  # fmt: skip
from mrcfabric.wire.templates import DataTemplate
from nicd.core.commands import PostWrite
from nicd.core.congestion.plane_windows import NO_PLANE, PlaneWindows
from nicd.core.ev_state import EvTrigger
from nicd.core.events import STATUS_OK, STATUS_REMOTE_INVALID, WRITE, WRITE_WITH_IMM, Completion
from nicd.core.lag import Lag
from nicd.core.memory import Region
from nicd.core.message import Message
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.ev_profile import EvProfile
from nicd.core.mrc.inflight import InflightTable
from nicd.core.mrc.limits import Limits
from nicd.core.mrc.recovery import QpLink, Recovery
from nicd.core.mrc.sent import Sent
from nicd.core.settings import MPR_UNIT

HALF_PSN: Final = (PSN_MASK + 1) >> 1
_LAST_OPCODES: Final = ((WRITE_ONLY, WRITE_ONLY_IMM), (WRITE_LAST, WRITE_LAST_IMM))
"""Opcode of a message's last packet: [other packets came before it][it has an immediate]."""


class Requestor:
    """One QP's sending half."""

    __slots__ = (
        "_asked_index", "_board", "_completed", "_early", "_in_order", "_index", "_inflight", "_max_wimm", "_messages",
        "_mpr", "_mpr_agreed", "_mtu", "_port", "_ports", "_posted", "_profile", "_psn_first", "_qp", "_queue",
        "_rqmsn", "_sack_bytes", "_stats", "_template", "_wimm_open", "posted_peak", "psn_next", "recovery", "windows",
    )  # fmt: skip

    def __init__(
        self, qp: QpLink, board: MrcBoard, profile: EvProfile, template: DataTemplate, windows: PlaneWindows,
        ports: PlanePorts, psn_first: int, limits: Limits,
    ) -> None:  # fmt: skip
        settings = board.settings
        self._qp = qp
        self._board = board
        self._stats = board.stats
        self._profile = profile
        self._template = template
        self.windows = windows
        self._mtu = settings.mtu_bytes
        self._ports = board.ports
        self._port = ports.port
        self._mpr = self._mpr_agreed = limits.send_mpr * MPR_UNIT
        self._max_wimm = limits.send_wimm
        self._in_order = settings.completion_in_order
        self._sack_bytes = settings.sack_bytes
        self._asked_index = 0  # transmissions up to and including the last one with the A bit
        self._psn_first = self.psn_next = psn_first
        self._inflight = InflightTable(settings, board.stats, windows, psn_first, profile.records)
        self._index = 0
        self._queue: deque[Message] = deque()
        """Messages with bytes that have never been sent."""
        self._posted = Lag(board.timers, settings.host_post_ns, self._ready) if settings.host_post_ns else None
        """Messages that are posted and have not reached the NIC yet; None: each reaches it at once."""
        self._messages: deque[Message] = deque()
        """Messages that are not complete, and messages that completed early, before an older one did."""
        self._early = 0  # how many of them completed early
        self.posted_peak = 0
        """The most that `_messages` has ever held."""
        self._completed = 0  # messages complete in order
        self._rqmsn = self._wimm_open = 0
        self.recovery = Recovery(qp, board, profile, self._inflight, windows, self._messages.__len__, self._waits)

    # -- posting

    @property
    def unfinished(self) -> int:
        """Messages that are posted and not complete."""
        return len(self._messages) - self._early

    @property
    def posted(self) -> int:
        """Messages whose work requests are kept: those not complete, and those that completed early."""
        return len(self._messages)

    @property
    def inflight_packets(self) -> int:
        """PSNs that are sent and not acknowledged."""
        return len(self._inflight.by_psn)

    @property
    def inflight_peak(self) -> int:
        """The most PSNs that were ever in flight."""
        return max(self._inflight.peak, len(self._inflight.by_psn))

    @property
    def cack(self) -> int:
        """Everything up to here has been acknowledged."""
        return self._inflight.cack

    @property
    def mpr(self) -> int:
        """How many PSNs the peer allows in flight at once."""
        return self._mpr

    def set_timers(self, rto_ns: int, linear: int, exponential: int) -> None:
        """The QP becomes RTS with these timers; see `limits.retry_timers`."""
        self._inflight.set_timers(rto_ns, linear)
        self.recovery.set_retries(linear, exponential)

    def obey(self, cack24: int, mpr_units: int) -> None:
        """Take the window that a SACK advertises (dynamic MPR). Packets beyond a smaller one stay valid."""
        # A newer SACK has overtaken this one: its window is out of date.
        if cack24 != self._inflight.cack & PSN_MASK:
            return
        grows = mpr_units * MPR_UNIT > self._mpr
        self._mpr = min(mpr_units * MPR_UNIT, self._mpr_agreed)
        if grows:
            self._qp.window_moved()

    def post(self, now: Instant, work: PostWrite, region: Region, view: memoryview) -> None:
        """Take a message; `view` is its bytes in `region`."""
        message = Message(work, region, view, self._completed + len(self._messages), self._rqmsn)
        if work.imm is not None:
            self._rqmsn = (self._rqmsn + 1) & 0xFFFF
        region.readers += 1
        if not self._messages:
            self.recovery.begin(now)
        self._messages.append(message)
        self.posted_peak = max(self.posted_peak, len(self._messages))
        if self._posted is None:
            self._queue.append(message)
        else:
            self._posted.put(now, message)

    def _ready(self, _now: Instant, message: Message) -> None:
        """A posted message has reached the NIC: its packets may leave."""
        self._queue.append(message)
        self._qp.window_moved()

    # -- sending

    def has_packet(self) -> bool:
        """Whether a packet is left to send that the peer's tracking window allows."""
        return self._inflight.lost > 0 or self._has_new()

    def _has_new(self) -> bool:
        """Whether such a packet is left that was never sent before."""
        queue = self._queue
        # MRC 1.0: PSN <= cack + MPR - 1.
        if not queue or self.psn_next - self._inflight.cack >= self._mpr:
            return False
        message = queue[0]
        return message.imm is None or message.sent > 0 or self._wimm_open < self._max_wimm

    def can_send(self) -> bool:
        """Whether planes and windows let a packet leave now, if a port has room."""
        return bool(self._qp.planes & self.windows.open) and self.has_packet()

    def _waits(self) -> bool:
        """Whether a packet may be sent that a plane can carry. One that must await an ACK (wimm) does not count."""
        return bool(self._qp.planes and self.has_packet())

    def emit(self, now: Instant, plane: int) -> bytearray:
        """Build the next packet for `plane`: the oldest lost one, or the next new one. Only after `has_packet`."""
        if self._inflight.lost and not (self.recovery.shuns(plane) and self._has_new()):
            return self._emit_lost(now, plane)
        message = self._queue[0]
        offset = message.sent
        size = message.length - offset
        imm: int | None = None
        if size > self._mtu:
            size = self._mtu
            opcode = WRITE_MIDDLE if offset else WRITE_FIRST
        else:
            imm = message.imm
            opcode = _LAST_OPCODES[offset > 0][imm is not None]
            self._queue.popleft()
            message.psn_last = self.psn_next
        psn = self.psn_next
        if not offset:
            message.psn_first = psn
            self._wimm_open += message.imm is not None
        message.sent = offset + size
        self.psn_next = psn + 1
        ev = self._profile.decks[plane].pick(now)
        self._note(now, Sent(psn, message, offset, size, opcode, ev, plane, now, 0, self._index))
        return self._template.build(
            opcode, psn & PSN_MASK, message.msn, message.rqmsn, message.remote_va + offset, message.r_key,
            message.length, self._profile.evs[ev], self._profile.outer[ev], message.view[offset : offset + size],
            self._asks(), False, imm, self._ports.stamp(now, self._port[plane]),
        )  # fmt: skip

    def _emit_lost(self, now: Instant, plane: int) -> bytearray:
        old = self._inflight.take_lost()
        message, offset, size, opcode = old.message, old.offset, old.size, old.opcode
        ev = self._profile.pick_other(now, plane, old.ev)
        sent = Sent(old.psn, message, offset, size, opcode, ev, plane, now, old.tries + 1, self._index)
        sent.follow(old)
        self._note(now, sent)
        self._stats.retransmits[old.cause] += 1
        self._stats.retransmitted_bytes += size
        imm = message.imm if opcode in (WRITE_LAST_IMM, WRITE_ONLY_IMM) else None
        packet = self._template.build(
            opcode, old.psn & PSN_MASK, message.msn, message.rqmsn, message.remote_va + offset, message.r_key,
            message.length, self._profile.evs[ev], self._profile.outer[ev], message.view[offset : offset + size],
            self._asks(), True, imm, self._ports.stamp(now, self._port[plane]),
        )  # fmt: skip
        if self._board.witness is not None:
            self._board.witness.sent_again(packet, old.cause)
        return packet

    def _asks(self) -> bool:
        """Whether the packet just noted gets the A bit, which asks for a SACK at once: no packet may leave after it."""
        if self.can_send():
            return False
        # MRC 1.0 4: ask when the window is nearly full. Two SACKs per window are enough to keep it moving.
        if self._queue or self._inflight.lost:
            unasked = (self._index - self._asked_index) * self._mtu
            if unasked < self._sack_bytes and unasked < self.windows.cwnd_bytes >> 1:
                return False
        self._asked_index = self._index
        return True

    def _note(self, now: Instant, sent: Sent) -> None:
        """Enter a transmission that leaves now into the in-flight table, and count it."""
        self._index += 1
        self._inflight.add(sent)
        stats = self._stats
        stats.data_packets += 1
        stats.payload_bytes += sent.size
        recovery = self.recovery
        recovery.last_sent_ns = now
        if recovery.timer.at_ns == NEVER:
            recovery.begin(now)

    # -- acknowledgements

    def on_sack(
        self, now: Instant, cack24: int, ack_offset: int | None, sack_offset: int, bitmap: int, marked: bool,
        stamp: int = 0, rtx: bool = False, penalty: int = 0, ev: int | None = None, held: int = -1, back: int = -1,
        placed: int = -1,
    ) -> bool:  # fmt: skip
        """Take a SACK that came on plane `back`, or the cumulative part of another acknowledgement: no bitmap.

        False: nonsense, which changes nothing. cack + `ack_offset` is the PSN that caused it (None: no packet did).
        `stamp` echoes that packet's time stamp, `rtx`: it was a retransmission, `ev` is the index of its EV. `held` and
        `placed`: what the receiver holds behind cack, and has placed; `penalty` is its byte.
        """
        inflight = self._inflight
        ahead = (cack24 - inflight.cack) & PSN_MASK
        if ahead >= HALF_PSN:
            ahead -= PSN_MASK + 1
        cack = inflight.cack + ahead
        if cack >= self.psn_next:
            return False
        self.recovery.heard(now)
        whole_ns = None if ack_offset is None else inflight.round_trip(now, cack + ack_offset, stamp, rtx)
        inflight.free(now, cack, cack + sack_offset, bitmap, self.psn_next - 1 - cack - held, placed)
        plane = NO_PLANE if ev is None else self._profile.plane[ev]
        rtt_ns = self.windows.less_way_back(plane, back, whole_ns)
        if rtt_ns is not None and ev is not None and (shares := self._profile.decks[plane].shares) is not None:
            rtt_ns = shares.heard(now, ev, rtt_ns, marked)
            marked = marked and rtt_ns is not None
        rtt_ns = self.windows.back.told(now, plane, back, rtt_ns)
        self.windows.on_sack(now, plane, marked, rtt_ns, penalty, whole_ns)
        self._judge(now)
        return True

    def came_late(self, now: Instant, psn24: int, index: int, rtx: bool, placed: int) -> Sequence[Sent]:
        """The packets that were judged lost and have only arrived late: see `InflightTable.late`."""
        ahead = (psn24 - self._inflight.cack - 1) & PSN_MASK
        psn = self._inflight.cack + 1 + (ahead if ahead < HALF_PSN else ahead - PSN_MASK - 1)
        return self._inflight.late(now, psn, index, rtx, placed)

    def on_probed(self, now: Instant, asked_ns: Instant, cack24: int, sack_offset: int, bitmap: int) -> None:
        """Judge what is lost by the SACK that answers a probe sent at `asked_ns`: it shows all arrivals it covers."""
        if cack24 == self._inflight.cack & PSN_MASK:
            gone = self._inflight.denied(asked_ns, self._inflight.cack + sack_offset, bitmap)
            if gone:
                self.recovery.accuse(now, gone, EvTrigger.GAP)

    def starved(self, now: Instant) -> bool:
        """Whether packets are in flight and no EV in use is known to have delivered any for `tail_probe_ns`."""
        oldest = self._inflight.oldest()
        since_ns = now - self._board.settings.tail_probe_ns
        return oldest is not None and oldest.sent_ns < since_ns and 0 <= self._profile.delivered_ns() < since_ns

    def _judge(self, now: Instant) -> None:
        """Packets were acknowledged: accuse the EVs of older packets that are lost by this evidence."""
        gaps = self._inflight.gaps()
        if gaps:
            self.recovery.accuse(now, gaps, EvTrigger.GAP)
        self._qp.window_moved()

    def on_ack(self, now: Instant, cack24: int, syndrome: int, msn24: int, alone: bool = False) -> bool:
        """Take a transport ACK: `msn24` messages are complete, or the peer refuses. False: nonsense, dropped.

        `alone`: it completes only the last of these messages, whose last PSN is `cack24`.
        """
        newly = (msn24 - self._completed) & PSN_MASK
        if newly >= HALF_PSN:
            newly = 0
        if syndrome != SYNDROME_ACK:
            if newly > len(self._messages) or not self.was_sent(cack24 + 1):
                return False
            self._qp.fail(now, STATUS_REMOTE_INVALID, "remote_invalid_request")
            return True
        if alone:
            return newly <= len(self._messages) and (not newly or self._one_complete(now, newly - 1, cack24))
        if newly > len(self._messages) or not self.on_sack(now, cack24, None, 1, 0, False):
            return False
        for _ in range(newly):
            message = self._messages[0]
            # MRC 1.0 section 3: complete means that every packet has arrived. Drop an ACK that says otherwise.
            if message.sent < message.length or message.psn_last > self._inflight.cack:
                return False
            self._messages.popleft()
            self._completed += 1
            if message.done:
                self._early -= 1
            else:
                self._finish(now, message, STATUS_OK)
        if not self._messages:
            self.recovery.timer.cancel()
        if newly:
            self._qp.window_moved()
        return True

    def was_sent(self, psn24: int) -> bool:
        """Whether this QP has sent that PSN. A refusal meant for an earlier QP of this number must not end this one."""
        return 0 < (self.psn_next - psn24) & PSN_MASK <= self.psn_next - self._psn_first

    def _one_complete(self, now: Instant, place: int, psn24: int) -> bool:
        """Complete a WRITE early, `place` behind the oldest message kept. False: contradicts what was sent."""
        message = self._messages[place]
        if message.imm is not None or message.sent < message.length or message.psn_last & PSN_MASK != psn24:
            return False
        if message.done or self._in_order:
            return True
        self.recovery.heard(now)
        self._inflight.free_between(now, message.psn_first, message.psn_last)
        self.windows.on_sack(now, NO_PLANE, False, None, 0)
        message.done = True
        self._early += 1
        self._finish(now, message, STATUS_OK)
        # If the oldest message is done now, the cumulative count moves past all that are done.
        while self._messages and self._messages[0].done:
            self._messages.popleft()
            self._completed += 1
            self._early -= 1
        if not self._messages:
            self.recovery.timer.cancel()
        self._judge(now)
        return True

    # -- the end of messages

    def flush(self, now: Instant, first: str, rest: str) -> None:
        """The QP has failed or goes away: the oldest message ends with status `first`, the others with `rest`."""
        self.recovery.timer.cancel()
        self._inflight.clear(now)
        if self._posted is not None:
            self._posted.clear()
        self._queue.clear()
        status = first
        while self._messages:
            message = self._messages.popleft()
            if not message.done:
                self._finish(now, message, status)
                status = rest
        self._early = 0

    def _finish(self, now: Instant, message: Message, status: str) -> None:
        message.region.readers -= 1
        opcode = WRITE
        if message.imm is not None:
            opcode = WRITE_WITH_IMM
            if message.sent:
                self._wimm_open -= 1
        self._board.complete(Completion(now, self._qp.qpn, message.wr_id, status, opcode, message.length, message.imm))
