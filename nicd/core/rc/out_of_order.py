"""An RC QP whose receiver places packets in any order, for switches that choose a way packet by packet.

Owns what `rc_recovery: out_of_order` does at both ends. The sender cuts a message into packets that are each a WRITE
Only, so that each says where it belongs; the last of a message is marked by its solicited-event bit. The receiver
places what comes, and what follows from the order waits: completions, immediates, acknowledgements. A gap is no loss.
The receiver asks for the packet that is missing only when one behind it came `rc_reorder_ns` ago, again after as long
and a round trip, and as often as a sender tries. The sender then sends that packet alone. It goes back
behind a time-out, and when such requests follow one another closely.

Real NICs place out of order for such switches, and with it send single packets again; how their packets say where they
belong is not published, so that part is ours, within IBTA's formats.

Sources: NVIDIA, "Out-of-Order (OOO) Data Placement" (ConnectX-5 and later, RC); IBTA 9.4.3, 9.7.4, 9.7.5.
"""

from typing import Final, TypeAlias

from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.wire.lrh_rc import LrhDataTemplate, is_solicited
from mrcfabric.wire.roce import RcDataTemplate, read_rc_imm, read_reth
from mrcfabric.wire.roce_layout import (
    FLAG_ACK_REQUEST,
    NAK_SEQUENCE,
    RC_IMM_OPCODES,
    RC_WRITE_ONLY,
    RC_WRITE_ONLY_IMM,
)
from nicd.core.board import Board
from nicd.core.events import Retransmit
from nicd.core.rc.dcqcn import Pace
from nicd.core.rc.posted import Posted
from nicd.core.rc.rc_stats import RcStats
from nicd.core.rc.requestor import HALF_PSN, NACK, QpLike, Requestor
from nicd.core.rc.responder import MEMORY, MISMATCH, AnswerLike, Responder
from nicd.core.stats import PLACED
from nicd.core.timers import Timer

OUT_OF_ORDER_PSNS: Final = 1_024
"""Packets that a QP may have in flight, where nobody says it; the receiver has a table of so many."""
_ONLY: Final = (RC_WRITE_ONLY, RC_WRITE_ONLY_IMM)
_NONE: Final = -1
NEAR_PACKETS: Final = 8
IN_ROW_MAX: Final = 4
"""After so many requests in a row for packets no further apart than `NEAR_PACKETS` the sender goes back: one packet a
round trip would not make good what a dead way has lost."""

_Came: TypeAlias = tuple[Instant, int, bool, int | None]
"""(when, payload bytes, whether a message ends with it, immediate) of a packet that is placed."""


class OutOfOrderRequestor(Requestor):
    """One QP's sending half."""

    __slots__ = ("_in_row", "_last", "_one")

    def __init__(
        self, qp: QpLike, board: Board, rc: RcStats, template: RcDataTemplate | LrhDataTemplate, pace: Pace,
        psn_first: int, window_bytes: int,
    ) -> None:  # fmt: skip
        """As `Requestor`."""
        super().__init__(qp, board, rc, template, pace, psn_first, window_bytes)
        self._one = _NONE
        """The PSN of the packet that the peer has asked for; it is the oldest not acknowledged, or out of date."""
        self._last = psn_first
        """The PSN of the last request, and how many in a row have been near each other."""
        self._in_row = 0

    def has_packet(self) -> bool:
        """Whether a packet is left to send that the window allows."""
        return self._one == self._una < self._next or super().has_packet()

    def emit(self, now: Instant, port: int) -> bytearray:
        """Build the next packet: the one asked for, or the next in order. Only after `has_packet`."""
        if self._one == self._una < self._next:
            psn, self._one = self._one, _NONE
            self._since_ns = now
            self._again_cause = NACK
            return self._build(now, psn, self._messages[0], True)
        return super().emit(now, port)

    def _packet(self, psn: int, message: Posted, ask: bool) -> bytearray:
        """A packet that is a WRITE of its own."""
        offset = (psn - message.psn_first) * self._mtu
        size = min(self._mtu, message.length - offset)
        last = psn == message.psn_last
        imm = message.imm if last else None
        template = self._template
        assert isinstance(template, LrhDataTemplate)
        return template.make(
            RC_WRITE_ONLY if imm is None else RC_WRITE_ONLY_IMM, psn & PSN_MASK,
            message.view[offset : offset + size], message.remote_va + offset, message.r_key, size, ask, imm,
            solicited=last,
        )  # fmt: skip

    def _asked(self, now: Instant, psn: int) -> None:
        """The peer misses this packet, which is the oldest not acknowledged; what came behind it, it has kept."""
        # A sender that has gone back sends it anyway.
        if psn >= self._next or psn == self._one:
            return
        self._in_row = self._in_row + 1 if psn - self._last <= NEAR_PACKETS else 1
        self._last = psn
        if self._in_row > IN_ROW_MAX:
            self._in_row = 0
            self._go_back(now, psn, NACK)
            return
        self._one = psn
        self._rc.passes_begun += 1
        self._stats.packets_lost += 1
        self._board.tell(Retransmit(now, self._qp.qpn, NACK, 1))
        self._qp.window_moved()

    def flush(self, now: Instant, first: str, rest: str) -> None:
        """As the base class."""
        self._one = _NONE
        super().flush(now, first, rest)


class OutOfOrderResponder(Responder):
    """One QP's receiving half."""

    __slots__ = (
        "_came_by",
        "_early",
        "_early_peak",
        "_psns_max",
        "_reorder_ns",
        "_repeat_ns",
        "_retries",
        "_timer",
        "_tries",
    )  # fmt: skip

    def __init__(self, qp: QpLike, board: Board, rc: RcStats, answer: AnswerLike, psn_first: int) -> None:
        """As `Responder`."""
        super().__init__(qp, board, rc, answer, psn_first)
        settings = board.settings
        self._psns_max = settings.rc_psns_max
        self._reorder_ns = settings.rc_reorder_ns
        self._repeat_ns = settings.rc_reorder_ns + settings.base_rtt_ns
        self._retries = settings.rc_retry_cnt + 1
        self._tries = 0
        """How often it has asked for the packet expected next."""
        self._early: dict[int, _Came] = {}
        """By PSN, in the order of arrival."""
        self._early_peak = 0
        self._came_by = (0, 0)
        """Port and PSN of the last packet that came before its turn."""
        self._timer = Timer(board.timers, self._on_timer)

    @property
    def early(self) -> int:
        """Packets kept that came before their turn."""
        return len(self._early)

    @property
    def early_peak(self) -> int:
        """The most of them that ever were kept."""
        return self._early_peak

    def on_data(
        self, now: Instant, port: int, packet: Buffer, opcode: int, psn24: int, flags: int, start: int, size: int
    ) -> str:
        """Take a data packet with a good ICRC. Returns one of `stats.OUTCOMES`, or the reason of a drop."""
        ahead = (psn24 - self.expected) & PSN_MASK
        psn = self.expected + ahead
        if ahead >= HALF_PSN or psn in self._early:
            return self._repeated(now, port, psn24, flags)
        if ahead >= self._psns_max:
            return self._stats.drop("psn_window")
        if opcode not in _ONLY:
            return self._refuse(now, port, psn24, MISMATCH)
        va, key, length = read_reth(packet, opcode, start)
        if size != length or not 0 < size <= self._mtu:
            return self._refuse(now, port, psn24, MISMATCH)
        if not self._board.memory.place(key, va, memoryview(packet)[start : start + size]):
            return self._refuse(now, port, psn24, MEMORY)
        self._placed(now, port, size)
        came = now, size, is_solicited(packet), read_rc_imm(packet, start) if opcode in RC_IMM_OPCODES else None
        if ahead:
            self._rc.out_of_sequence += 1
            self._rc.selective_kept += 1
            self._early[psn] = came
            self._early_peak = max(self._early_peak, len(self._early))
            self._came_by = port, psn24
            if len(self._early) == 1:
                self._timer.set(now + self._reorder_ns)
            return PLACED
        closes = bool(self._early)
        next_one: _Came | None = came
        while next_one is not None:
            self._in_order(now, *next_one[1:])
            next_one = self._early.pop(self.expected, None)
        if closes:
            self._look_on(now)
        if closes or flags & FLAG_ACK_REQUEST or self._since_ack >= self._ack_every:
            self._acknowledge(now, port, psn24)
        return PLACED

    def stop(self) -> None:
        """The QP is destroyed or has failed."""
        self._timer.cancel()
        self._early.clear()

    def _in_order(self, now: Instant, size: int, last: bool, imm: int | None) -> None:
        """The packet expected next has come."""
        self.expected += 1
        self._since_ack += 1
        self._length += size
        if last:
            length, self._length = self._length, 0
            self._complete(now, length, imm)

    def _look_on(self, now: Instant) -> None:
        """The packet expected next is another one: if there is a gap, what stands behind it has waited already."""
        self._tries = 0
        if not self._early:
            self._timer.cancel()
            return
        # In a table in order of arrival the first one has waited longest.
        came_ns = next(iter(self._early.values()))[0]
        self._timer.set(max(now, came_ns + self._reorder_ns))

    def _on_timer(self, now: Instant) -> None:
        """The packet expected next is held to be lost: ask for it."""
        self._tries += 1
        port, psn24 = self._came_by
        self._acknowledge(now, port, psn24, NAK_SEQUENCE)
        # Where that brings nothing, the sender's time-out is next.
        if self._tries < self._retries:
            self._timer.set(now + self._repeat_ns)
