"""The receiving half of a QP: it writes the payload of every packet straight to its address, in any order.

Owns placement, refusals, and when which acknowledgement is sent. `sack` tracks PSNs, `assembly` keeps messages and the
order of their completion, `memory` holds the regions, the peer's reverse set chooses the paths of acknowledgements.

MRC 1.0 section 3: a SACK is due after enough bytes, on A, CE, rtx, and for a probe; a transport ACK when messages are
complete; a NACK for trimmed packets, for PSNs outside the window, and for packets that find no room.
"""

from typing import Final

from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.dscp import CE
from mrcfabric.wire.fastpath import read_data, read_data_ts, read_imm
from mrcfabric.wire.layout import (
    FLAG_A,
    FLAG_RTX,
    FLAG_TS,
    IMM_OPCODES,
    M_NONE,
    M_SKIP_ONCE,
    NACK_NO_BITMAP,
    NACK_NO_PKT_BUFFER,
    NACK_NO_RESOURCE,
    NACK_PSN_OOR_WINDOW,
    NACK_TRIMMED,
    NACK_TRIMMED_LASTHOP,
    NACK_UNEXP_EVENT,
    PSN_MASK,
    SYNDROME_ACK,
    SYNDROME_INVALID_REQUEST,
    WRITE_FIRST,
    WRITE_MIDDLE,
)
from mrcfabric.wire.templates import ControlTemplate
from nicd.core.congestion.window import RESTORE
from nicd.core.events import RECV_WITH_IMM, STATUS_FLUSHED, STATUS_OK, Completion
from nicd.core.mrc.assembly import FULL, OVERFLOW, Assembly, Incoming
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.early_acks import EarlyAcks
from nicd.core.mrc.limits import Limits
from nicd.core.mrc.mark_runs import MarkRuns
from nicd.core.mrc.peer import Peer
from nicd.core.mrc.recovery import QpLink
from nicd.core.mrc.reverse_set import Way
from nicd.core.mrc.sack import BITMAP_BITS, DUPLICATE, NEW, OUTSIDE, RCVD_MASK, RCVD_SHIFT, ReceiveWindow
from nicd.core.mrc.sack_spans import Waiting
from nicd.core.settings import MPR_UNIT
from nicd.core.stamps import moved_on
from nicd.core.stats import PLACED, REPEATED, TRIMMED
from nicd.core.timers import Timer

# MRC 1.0 section 3: towards the SACK threshold each packet counts at least this much.
_SACK_BYTES_LEAST: Final = 1024
_RCVD_ROUND: Final = (1 << RCVD_SHIFT) - 1
_OOO_MAX: Final = 0x7FFF
_FLAG_NOW: Final = FLAG_A | FLAG_RTX


class Responder:
    """One QP's receiving half."""

    __slots__ = (
        "_assembly", "_back", "_bitmap_psns", "_board", "_bounded", "_control", "_delay_ns", "_dynamic_mpr", "_early",
        "_held", "_held_max", "_in_order", "_mpr", "_peer", "_qp", "_rcvd_bytes", "_recent", "_runs", "_service_time",
        "_stats", "_threshold", "_timer", "_trim_nack", "_waiting", "bytes_placed", "duplicates", "marks", "window",
    )  # fmt: skip

    def __init__(
        self, qp: QpLink, board: MrcBoard, peer: Peer, control: ControlTemplate, psn_first: int, limits: Limits
    ) -> None:
        settings = board.settings
        self._qp = qp
        self._board = board
        self._stats = board.stats
        self._peer = peer
        self._back = peer.reverse_set
        self._control = control
        self._mpr = limits.receive_mpr
        psns = limits.receive_mpr * MPR_UNIT
        self.window = ReceiveWindow(psn_first, psns, board.stats.ahead)
        self._assembly = Assembly(
            psn_first, settings.mtu_bytes, settings.messages_open_max or psns, limits.receive_wimm
        )
        self._in_order = settings.completion_in_order
        self._early = EarlyAcks(board.timers, self._assembly, settings.ack_early_ns, self._acknowledge_alone)
        self._bitmap_psns = min(settings.bitmap_psns or psns, psns)
        self._held = 0
        """Packets of this QP out of order, as last added to the board's count."""
        self._held_max = settings.ooo_packets_max or 1 << 60
        self._bounded = bool(settings.bitmap_psns or settings.ooo_packets_max)
        """Whether settings bound packets out of order more narrowly than the window."""
        self._dynamic_mpr = limits.dynamic_mpr
        self._trim_nack = limits.trim_nack
        self._service_time = limits.service_time
        self._threshold = settings.sack_bytes
        self._delay_ns = settings.sack_delay_ns
        self._recent = settings.sack_base_recent
        self.marks = MarkRuns(settings.always_skip_marks, settings.marked_evs_max)
        self._runs = self.marks.runs
        self._rcvd_bytes = 0
        self.bytes_placed = self.duplicates = 0
        """What this QP adds to the NIC's counters of these names."""
        self._waiting = Waiting(settings.sack_base_recent)
        self._timer = Timer(board.timers, self._on_timer)

    @property
    def untouched(self) -> bool:
        """Whether nothing has been received yet."""
        return not self._rcvd_bytes

    @property
    def messages(self) -> Assembly:
        """The messages begun and not complete in order."""
        return self._assembly

    def on_data(
        self, now: Instant, port: int, packet: Buffer, traffic_class: int, opcode: int, flags: int, psn24: int,
        ev: int, start: int, size: int,
    ) -> str:  # fmt: skip
        """Take a whole data packet with a good ICRC. Returns one of `stats.OUTCOMES` or `stats.DROP_REASONS`."""
        window = self.window
        verdict, psn = window.classify(psn24)
        stats = self._stats
        stats.data_received += 1
        self._back.data_arrived(now)
        m = M_NONE
        if traffic_class & CE == CE:
            m = self.marks.marked(ev)
            stats.ecn_marks += 1
        elif self._runs:
            self._runs.pop(ev, None)
        if flags & FLAG_TS:
            rqmsn, msn, stamp, _, va, r_key, length = read_data_ts(packet)
        else:
            rqmsn, msn, va, r_key, length = read_data(packet)
            stamp = 0
        if verdict != NEW:
            return self._not_new(now, verdict, psn, psn24, opcode, ev, m, flags, stamp)
        if self._bounded and psn != window.expected and (lacking := self._lacking(now, psn, ev, stamp)):
            return lacking
        message = self._assembly.admit(psn, opcode, rqmsn, msn, va, r_key, length, size)
        if message is None:
            return self._unfit(now, psn, ev, stamp)
        if not self._board.memory.place(r_key, va, packet[start : start + size]):
            self._refuse(now, "memory_access")
            return stats.drop("memory")
        window.receive(psn)
        if self._bounded:
            self._hold(window.ooo_count)
        stats.bytes_placed += size
        self.bytes_placed += size
        self._board.bins.add(now, port, size)
        # UEC PDS: counts UDP length + 40 of new packets.
        self._rcvd_bytes += len(packet) - 40
        if flags & _FLAG_NOW or m:
            self._sack_now(now, psn, ev, m, flags, stamp)
        else:
            self._wait(now, psn, ev, stamp, max(_SACK_BYTES_LEAST, size))
        message.left = left = message.left - 1
        if opcode in IMM_OPCODES and not self._assembly.immediate(message, rqmsn, read_imm(packet, start)):
            return self._unfit(now, psn, ev, stamp)
        return PLACED if left else self._whole(now, message, psn, ev, stamp)

    def on_trimmed(self, now: Instant, psn24: int, ev: int, last_hop: bool, flags: int = 0, stamp: int = 0) -> str:
        """Take a trimmed data packet: ask for it again unless it has arrived meanwhile. Returns as `on_data`."""
        self._stats.trims["last_hop" if last_hop else "path"] += 1
        self._back.data_arrived(now)
        verdict, psn = self.window.classify(psn24)
        if verdict == DUPLICATE:
            self._sack(now, psn, ev, M_NONE, bool(flags & FLAG_RTX), stamp)
        elif verdict == OUTSIDE:
            return self._outside(now, ev, psn24, stamp)
        elif self._trim_nack:
            self._nack(now, NACK_TRIMMED_LASTHOP if last_hop else NACK_TRIMMED, ev, psn24, stamp)
        return TRIMMED

    def on_probe(self, now: Instant, ev: int, probe_id: int, marked: bool, stamp: int = 0, port: int = 0) -> None:
        """Answer a reliability probe with all we know, and repeat the transport ACK in case it was lost."""
        self._stats.probes_answered += 1
        self._back.probed(now)
        shown = self.window.bitmaps(self._board.settings.probe_sacks_max)
        self._waiting.shown_below(self.window.expected + shown[-1][0] + BITMAP_BITS - 1)
        self._sack_rest(now)
        for number, (offset, bitmap) in enumerate(shown):
            m = M_SKIP_ONCE if marked else M_NONE
            for way in (None,) if number else self._back.ways(now, port, ev):
                self._send_sack(now, 0, ev, m, False, probe_id, offset, bitmap, stamp, way)
        if self._assembly.completed:
            self._acknowledge(now, SYNDROME_ACK)

    def stop(self) -> None:
        """The QP is destroyed or has failed."""
        self._timer.cancel()
        self._early.stop()
        self._hold(0)

    # -- arrivals that place nothing

    def _not_new(
        self, now: Instant, verdict: int, psn: int, psn24: int, opcode: int, ev: int, m: int, flags: int, stamp: int
    ) -> str:
        if verdict == DUPLICATE:
            # MRC 1.0 section 3: do not write it again, but acknowledge it again: an acknowledgement may have been lost.
            self._stats.duplicates += 1
            self.duplicates += 1
            self._sack_now(now, psn, ev, m, flags, stamp)
            if opcode != WRITE_MIDDLE and opcode != WRITE_FIRST and psn < self.window.expected:
                self._acknowledge(now, SYNDROME_ACK)
            return REPEATED
        assert verdict == OUTSIDE
        return self._outside(now, ev, psn24, stamp)

    def _outside(self, now: Instant, ev: int, psn24: int, stamp: int) -> str:
        """Drop a PSN that the window does not cover, with or without a NACK."""
        # MRC 1.0 section 3: one rule drops in silence, a table demands the NACK; hence a setting.
        if self._board.settings.window_nack:
            self._nack(now, NACK_PSN_OOR_WINDOW, ev, psn24, stamp)
        return self._stats.drop("psn_window")

    def _lacking(self, now: Instant, psn: int, ev: int, stamp: int) -> str:
        """Why a packet out of order cannot be tracked, after asking for it again; empty: it can be."""
        # MRC 1.0 NETH: the peer sends again what we could not track or keep, and blames no path.
        if psn - self.window.expected >= self._bitmap_psns:
            self._nack(now, NACK_NO_BITMAP, ev, psn & PSN_MASK, stamp)
            return self._stats.drop("no_bitmap")
        if self._board.ooo_held >= self._held_max:
            self._nack(now, NACK_NO_PKT_BUFFER, ev, psn & PSN_MASK, stamp)
            return self._stats.drop("no_pkt_buffer")
        return ""

    def _unfit(self, now: Instant, psn: int, ev: int, stamp: int) -> str:
        """Drop or refuse a packet that does not fit the messages known so far."""
        fault = self._assembly.fault
        self._stats.drop(fault)
        if fault == FULL:
            self._nack(now, NACK_NO_RESOURCE, ev, psn & PSN_MASK, stamp)
        elif fault == OVERFLOW:
            self._refuse(now, fault)
        else:
            # MRC 1.0 NETH: mandatory for an event that must not happen; both ends go to ERROR.
            self._nack(now, NACK_UNEXP_EVENT, ev, psn & PSN_MASK, stamp)
            self._qp.fail(now, STATUS_FLUSHED, fault)
        return fault

    def _hold(self, count: int) -> None:
        """Report that `count` packets of this QP are out of order now."""
        self._board.ooo_held += count - self._held
        self._held = count

    def _refuse(self, now: Instant, reason: str) -> None:
        """The peer asked for something that is not allowed: tell it so, and fail the QP."""
        self._acknowledge(now, SYNDROME_INVALID_REQUEST)
        self._qp.fail(now, STATUS_FLUSHED, reason)

    # -- completion

    def _whole(self, now: Instant, message: Incoming, psn: int, ev: int, stamp: int) -> str:
        """All packets of a message are there; `psn` came last. Returns what became of that packet, as `on_data`."""
        assembly = self._assembly
        if not assembly.has_ends(message):
            return self._unfit(now, psn, ev, stamp)
        if message.msn != assembly.completed & 0xFFFF:
            # MRC 1.0 section 3: WRITEs complete in any order, immediates in the order of sending.
            if message.imm < 0 and not self._in_order:
                message.done = True
                self._stats.messages_completed += 1
                self._early.add(now, message)
            return PLACED
        while (ready := assembly.next_whole()) is not None:
            if not ready.done:
                self._stats.messages_completed += 1
            if ready.imm >= 0:
                self._board.complete(
                    Completion(now, self._qp.qpn, ready.msn, STATUS_OK, RECV_WITH_IMM, ready.length, ready.imm)
                )
        self._acknowledge(now, SYNDROME_ACK)
        return self._unfit(now, psn, ev, stamp) if assembly.fault else PLACED

    # -- acknowledgements

    def _on_timer(self, now: Instant) -> None:
        waiting = self._waiting
        while waiting.spans:
            due_ns = waiting.spans[0].first_ns + self._delay_ns
            if now < due_ns:
                self._timer.set(due_ns)
                return
            self._sack_waiting(now)

    def _wait(self, now: Instant, psn: int, ev: int, stamp: int, counted: int) -> None:
        """Let a packet wait for its SACK, or send the SACK if enough bytes have come since the last one."""
        waiting = self._waiting
        waiting.add(now, psn, ev, stamp, counted, self.window.expected)
        if waiting.counted >= self._threshold:
            self._sack_waiting(now)
        elif self._timer.at_ns == NEVER:
            self._timer.set(now + self._delay_ns)

    def _sack_now(self, now: Instant, psn: int, ev: int, m: int, flags: int, stamp: int) -> None:
        """Send a SACK for this packet. A peer that asked, or had to send again, is told all that has arrived."""
        self._sack(now, psn, ev, m, bool(flags & FLAG_RTX), stamp)
        if flags & _FLAG_NOW:
            self._sack_rest(now)

    def _sack_rest(self, now: Instant) -> None:
        while self._waiting.spans:
            self._sack_waiting(now)

    def _sack_waiting(self, now: Instant) -> None:
        """Send the SACK of the span of packets that has waited longest, as caused by the last of them."""
        span = self._waiting.next(self.window.expected)
        # UEC CMS: move the stamp on, so that the round trip leaves out how long the packet waited for its SACK.
        stamp = moved_on(span.stamp, now - span.last_ns) if self._service_time else span.stamp
        self._sack(now, span.psn, span.ev, M_NONE, False, stamp)

    def _sack(self, now: Instant, psn: int, ev: int, m: int, rtx: bool, stamp: int) -> None:
        """Send a SACK caused by the packet `psn`, which came on `ev`. Its bitmap shows what it can of those waiting."""
        window = self.window
        offset, bitmap = window.bitmap(self._waiting.shown(psn, window.expected), self._recent)
        self._send_sack(now, psn - window.expected + 1, ev, m, rtx, None, offset, bitmap, stamp)

    def _send_sack(
        self,
        now: Instant,
        ack_offset: int,
        ev: int,
        m: int,
        rtx: bool,
        probe_id: int | None,
        offset: int,
        bitmap: int,
        stamp: int,
        way: Way | None = None,
    ) -> None:
        if way is None:
            way = self._back.reply()
            if way is None:
                self._stats.drops["no_port"] += 1
                return
        port, own_ev, outer = way
        window = self.window
        mpr = self._advertised() if self._dynamic_mpr else 0
        word = 0
        penalty = self._board.penalty
        if penalty is not None:
            word = penalty.byte(now, self._peer.index, self._qp.qpn, window.ooo_count)
            self._stats.penalties_sent += word & ~RESTORE > 0
        packet = self._control.sack(
            own_ev, outer, ev, m, max(-32768, ack_offset), (window.expected - 1) & PSN_MASK,
            offset, bitmap, stamp, min(_OOO_MAX, window.ooo_count),
            (self._rcvd_bytes + _RCVD_ROUND) >> RCVD_SHIFT & RCVD_MASK, mpr, rtx, probe_id,
            word >> 7, word & ~RESTORE,
        )  # fmt: skip
        self._stats.sacks_sent += 1
        self._board.ports.offer(now, port, packet, True)

    def _nack(self, now: Instant, reason: int, ev: int, psn24: int, stamp: int) -> None:
        way = self._back.reply()
        if way is None:
            self._stats.drops["no_port"] += 1
            return
        port, own_ev, outer = way
        self._stats.nacks_sent += 1
        self._board.ports.offer(now, port, self._control.nack(own_ev, outer, reason, ev, psn24, stamp), True)

    def _acknowledge(self, now: Instant, syndrome: int) -> None:
        """Send a transport ACK: all messages complete in order, or a refusal."""
        self._send_ack(now, self.window.cack, syndrome, self._assembly.completed, False)

    def _acknowledge_alone(self, now: Instant, psn: int, msn: int) -> None:
        """Acknowledge one message early: A set, PSN of its last packet, its number + 1 (a choice of ours)."""
        self._stats.acks_early += 1
        self._send_ack(now, psn, SYNDROME_ACK, msn, True)

    def _send_ack(self, now: Instant, psn: int, syndrome: int, msn: int, alone: bool) -> None:
        way = self._back.reply()
        if way is None:
            self._stats.drops["no_port"] += 1
            return
        port, own_ev, outer = way
        packet = self._control.acknowledge(own_ev, outer, psn & PSN_MASK, syndrome, msn & PSN_MASK, alone)
        self._stats.acks_sent += 1
        self._board.ports.offer(now, port, packet, True)

    def _advertised(self) -> int:
        """The window that SACKs advertise (dynamic MPR): what the bounds of out-of-order packets leave, in units."""
        room = self._held + self._held_max - self._board.ooo_held
        # MRC 1.0 SETH: 0 would mean that dynamic MPR is off. Packets of one unit are in order or soon will be.
        return max(1, min(self._mpr, min(room, self._bitmap_psns) // MPR_UNIT))
