"""The receiving half of a QP: every packet goes straight to its place, whatever the order; messages complete in order.

Owns placement, the completion of messages, and when which acknowledgement is sent. PSN tracking is `sack`'s, memory
`memory`'s, the path of an acknowledgement the peer's reverse set.

MRC 1.0 section 3: a SACK is due after enough bytes, on A, CE, rtx, and for a probe; a transport ACK when messages are
complete; a NACK for trimmed packets and for PSNs outside the window.
"""

from heapq import heappop, heappush
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
    NACK_PSN_OOR_WINDOW,
    NACK_TRIMMED,
    NACK_TRIMMED_LASTHOP,
    PSN_MASK,
    SYNDROME_ACK,
    SYNDROME_INVALID_REQUEST,
    WRITE_FIRST,
    WRITE_LAST,
    WRITE_MIDDLE,
)
from mrcfabric.wire.templates import ControlTemplate
from nicd.core.board import Board
from nicd.core.events import RECV_WITH_IMM, STATUS_FLUSHED, STATUS_OK, Completion
from nicd.core.peer import Peer
from nicd.core.recovery import QpLink
from nicd.core.sack import DUPLICATE, NEW, OUTSIDE, ReceiveWindow
from nicd.core.stamps import moved_on
from nicd.core.timers import Timer

# MRC 1.0 section 3: towards the SACK threshold each packet counts at least this much.
_SACK_BYTES_LEAST: Final = 1024
# UEC PDS: rcvd_bytes travels in units of 256 bytes, rounded up, modulo 2**24.
_RCVD_ROUND: Final = 255
_RCVD_SHIFT: Final = 8
_RCVD_MASK: Final = 0xFFFFFF
_OOO_MAX: Final = 0x7FFF
# MRC 1.0 7.5, SETH: mpr is 0 where dynamic MPR was not negotiated.
_MPR_STATIC: Final = 0
_FLAG_NOW: Final = FLAG_A | FLAG_RTX


class Responder:
    """One QP's receiving half."""

    __slots__ = (
        "_board", "_bytes", "_completed", "_control", "_delay_ns", "_last_ev", "_last_ns", "_last_psn", "_last_stamp",
        "_lasts", "_max_wimm", "_peer", "_qp", "_rcvd_bytes", "_recent", "_service_time", "_since",
        "_since_ns", "_stashed", "_stats", "_threshold", "_timer", "window",
    )  # fmt: skip

    def __init__(self, qp: QpLink, board: Board, peer: Peer, control: ControlTemplate, psn_first: int) -> None:
        settings = board.settings
        self._qp = qp
        self._board = board
        self._stats = board.stats
        self._peer = peer
        self._control = control
        self.window = ReceiveWindow(psn_first, settings.mpr_units * 128)
        self._threshold = settings.sack_bytes
        self._delay_ns = settings.sack_delay_ns
        self._recent = settings.sack_base_recent
        self._service_time = settings.service_time
        self._max_wimm = settings.max_wimm
        self._rcvd_bytes = 0
        self._since = 0
        """Bytes received since the last SACK, as the threshold counts them."""
        self._since_ns: Instant = 0
        """When the first of them came."""
        self._last_psn = psn_first
        self._last_ev = 0
        self._last_stamp = 0
        self._last_ns: Instant = 0
        """When it came."""
        self._timer = Timer(board.timers, self._on_timer)
        self._lasts: list[tuple[int, int, int, int]] = []
        """Heap of last packets of messages not complete: (PSN, MSN, immediate or -1, message length)."""
        self._stashed = 0
        """With-immediate messages among them."""
        self._completed = 0

    def on_data(
        self,
        now: Instant,
        plane: int,
        packet: Buffer,
        traffic_class: int,
        opcode: int,
        flags: int,
        psn24: int,
        ev: int,
        start: int,
        size: int,
    ) -> None:
        """A whole data packet with a good ICRC."""
        window = self.window
        verdict, psn = window.classify(psn24)
        stats = self._stats
        stats.data_received += 1
        self._peer.data_arrived(now)
        m = M_NONE
        if traffic_class & CE == CE:
            m = M_SKIP_ONCE
            stats.ecn_marks += 1
        if flags & FLAG_TS:
            _, msn, stamp, _, va, r_key, length = read_data_ts(packet)
        else:
            _, msn, va, r_key, length = read_data(packet)
            stamp = 0
        if verdict != NEW:
            self._not_new(now, verdict, psn, psn24, ev, m, flags, stamp)
            return
        if not self._board.memory.place(r_key, va, memoryview(packet)[start : start + size]):
            stats.drops["memory"] += 1
            self._refuse(now, "memory_access")
            return
        window.receive(psn)
        stats.bytes_placed += size
        self._board.bins.add(now, plane, size)
        # UEC PDS: counts UDP length + 40 of new packets.
        self._rcvd_bytes += len(packet) - 40
        if not self._since:
            self._since_ns = now
            if self._timer.at_ns == NEVER:
                self._timer.set(now + self._delay_ns)
        self._since += max(_SACK_BYTES_LEAST, size)
        if flags & _FLAG_NOW or m or self._since >= self._threshold:
            self._sack(now, psn, ev, m, bool(flags & FLAG_RTX), stamp)
        else:
            self._last_psn = psn
            self._last_ev = ev
            self._last_stamp = stamp
            self._last_ns = now
        if opcode != WRITE_MIDDLE and opcode != WRITE_FIRST:
            self._last_packet(psn, msn, opcode, packet, start, length)
        if self._lasts and self._lasts[0][0] < window.expected:
            self._complete(now)
        # MRC 1.0 section 3: early immediates wait for their turn, but only so many.
        if self._stashed > self._max_wimm:
            self._refuse(now, "immediates_overflow")

    def on_trimmed(self, now: Instant, psn24: int, ev: int, last_hop: bool, flags: int = 0, stamp: int = 0) -> None:
        """What a switch left of a data packet: ask for it again, unless it has arrived meanwhile."""
        self._stats.trims["last_hop" if last_hop else "path"] += 1
        self._peer.data_arrived(now)
        verdict, psn = self.window.classify(psn24)
        if verdict == DUPLICATE:
            self._sack(now, psn, ev, M_NONE, bool(flags & FLAG_RTX), stamp)
        elif verdict == OUTSIDE:
            self._outside(now, ev, psn24, stamp)
        elif self._board.settings.trim_nack:
            self._nack(now, NACK_TRIMMED_LASTHOP if last_hop else NACK_TRIMMED, ev, psn24, stamp)

    def on_probe(self, now: Instant, ev: int, probe_id: int, marked: bool, stamp: int = 0) -> None:
        """A reliability probe: answer with all we know, the transport ACK included in case it was lost."""
        self._stats.probes_answered += 1
        self._peer.probed(now)
        self._since = 0
        m = M_SKIP_ONCE if marked else M_NONE
        for offset, bitmap in self.window.bitmaps(self._board.settings.probe_sacks_max):
            self._send_sack(now, 0, ev, m, False, probe_id, offset, bitmap, stamp)
        if self._completed:
            self._acknowledge(now, SYNDROME_ACK)

    def stop(self) -> None:
        """The QP is gone or has failed."""
        self._timer.cancel()

    # -- arrivals that place nothing

    def _not_new(
        self, now: Instant, verdict: int, psn: int, psn24: int, ev: int, m: int, flags: int, stamp: int
    ) -> None:
        if verdict == DUPLICATE:
            self._stats.duplicates += 1
            self._sack(now, psn, ev, m, bool(flags & FLAG_RTX), stamp)
            return
        assert verdict == OUTSIDE
        self._outside(now, ev, psn24, stamp)

    def _outside(self, now: Instant, ev: int, psn24: int, stamp: int) -> None:
        """A PSN that the window does not cover."""
        self._stats.drops["psn_window"] += 1
        # MRC 1.0 section 3: one rule drops in silence, a table demands the NACK; hence a setting.
        if self._board.settings.window_nack:
            self._nack(now, NACK_PSN_OOR_WINDOW, ev, psn24, stamp)

    def _refuse(self, now: Instant, reason: str) -> None:
        """The peer asked for something that is not allowed: tell it, and fail."""
        self._acknowledge(now, SYNDROME_INVALID_REQUEST)
        self._qp.fail(now, STATUS_FLUSHED, reason)

    # -- completion

    def _last_packet(self, psn: int, msn: int, opcode: int, packet: Buffer, start: int, length: int) -> None:
        imm = -1
        if opcode in IMM_OPCODES:
            imm = read_imm(packet, start)
            self._stashed += 1
        else:
            assert opcode >= WRITE_LAST
        heappush(self._lasts, (psn, msn, imm, length))

    def _complete(self, now: Instant) -> None:
        """Everything up to the cumulative point is there: complete the messages that end before it, in order."""
        lasts = self._lasts
        expected = self.window.expected
        stats = self._stats
        while lasts and lasts[0][0] < expected:
            _, msn, imm, length = heappop(lasts)
            self._completed += 1
            stats.messages_completed += 1
            if imm >= 0:
                self._stashed -= 1
                self._board.tell(Completion(now, self._qp.qpn, msn, STATUS_OK, RECV_WITH_IMM, length, imm))
        self._acknowledge(now, SYNDROME_ACK)

    # -- acknowledgements

    def _on_timer(self, now: Instant) -> None:
        if not self._since:
            return
        due_ns = self._since_ns + self._delay_ns
        if now < due_ns:
            self._timer.set(due_ns)
        else:
            stamp = self._last_stamp
            # UEC CMS: a round trip without the time that the packet has waited for its SACK.
            if self._service_time:
                stamp = moved_on(stamp, now - self._last_ns)
            self._sack(now, self._last_psn, self._last_ev, M_NONE, False, stamp)

    def _sack(self, now: Instant, psn: int, ev: int, m: int, rtx: bool, stamp: int) -> None:
        """A SACK caused by the packet `psn`, which came on `ev`."""
        self._since = 0
        window = self.window
        offset, bitmap = window.bitmap(psn, self._recent)
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
    ) -> None:
        plane = self._peer.reply_plane()
        if plane < 0:
            self._stats.drops["no_port"] += 1
            return
        window = self.window
        own_ev, outer = self._peer.reverse[plane]
        packet = self._control.sack(
            own_ev, outer, ev, m, max(-32768, ack_offset), (window.expected - 1) & PSN_MASK,
            offset, bitmap, stamp, min(_OOO_MAX, window.ooo_count),
            (self._rcvd_bytes + _RCVD_ROUND) >> _RCVD_SHIFT & _RCVD_MASK, _MPR_STATIC, rtx, probe_id,
        )  # fmt: skip
        self._stats.sacks_sent += 1
        self._board.ports.offer(now, plane, packet, True)

    def _nack(self, now: Instant, reason: int, ev: int, psn24: int, stamp: int) -> None:
        plane = self._peer.reply_plane()
        if plane < 0:
            self._stats.drops["no_port"] += 1
            return
        own_ev, outer = self._peer.reverse[plane]
        self._stats.nacks_sent += 1
        self._board.ports.offer(now, plane, self._control.nack(own_ev, outer, reason, ev, psn24, stamp), True)

    def _acknowledge(self, now: Instant, syndrome: int) -> None:
        plane = self._peer.reply_plane()
        if plane < 0:
            self._stats.drops["no_port"] += 1
            return
        own_ev, outer = self._peer.reverse[plane]
        cack = self.window.cack & PSN_MASK
        packet = self._control.acknowledge(own_ev, outer, cack, syndrome, self._completed & PSN_MASK)
        self._stats.acks_sent += 1
        self._board.ports.offer(now, plane, packet, True)
