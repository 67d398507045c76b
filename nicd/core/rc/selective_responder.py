"""The receiving half of an RC QP with selective recovery (IRN): packets are placed as they come.

Owns the packets that are placed and wait for their turn. Every packet says where it belongs, so only what follows from
the order waits: messages, completions and immediates. A packet behind a gap is answered at once by a NAK that says what
is missing and which packet has come; one that closes a gap is acknowledged at once.

IRN (SIGCOMM'18) 3.1, 5.2 to 5.4 (packets out of order).
"""

from typing import TypeAlias

from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.wire.roce import read_rc_imm, read_reth
from mrcfabric.wire.roce_layout import (
    FLAG_ACK_REQUEST,
    NAK_SEQUENCE,
    RC_ENDS,
    RC_IMM_OPCODES,
    RC_STARTS,
    RC_WRITE_FIRST,
    RC_WRITE_MIDDLE,
)
from nicd.core.board import Board
from nicd.core.rc.rc_stats import RcStats
from nicd.core.rc.requestor import HALF_PSN, QpLike
from nicd.core.rc.responder import MEMORY, MISMATCH, AnswerLike, Responder
from nicd.core.stats import PLACED

_Came: TypeAlias = tuple[int, int, int, int | None]
"""(opcode, payload bytes, bytes of the message, immediate) of a packet that is placed."""


class SelectiveResponder(Responder):
    """One QP's receiving half."""

    __slots__ = ("_early", "_early_peak", "_psns_max")

    def __init__(self, qp: QpLike, board: Board, rc: RcStats, answer: AnswerLike, psn_first: int) -> None:
        """As `Responder`."""
        super().__init__(qp, board, rc, answer, psn_first)
        self._psns_max = self._board.settings.rc_psns_max
        self._early: dict[int, _Came] = {}
        self._early_peak = 0

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
            return self._repeated(now, port, psn24, FLAG_ACK_REQUEST)
        if ahead >= self._psns_max:
            return self._stats.drop("psn_window")
        va, key, length = read_reth(packet, opcode, start)
        if not self._is_possible(opcode, size, length):
            return self._refuse(now, port, psn24, MISMATCH)
        if not self._board.memory.place(key, va, memoryview(packet)[start : start + size]):
            return self._refuse(now, port, psn24, MEMORY)
        self._placed(now, port, size)
        came = (opcode, size, length, read_rc_imm(packet, start) if opcode in RC_IMM_OPCODES else None)
        if ahead:
            self._rc.out_of_sequence += 1
            self._rc.selective_kept += 1
            self._early[psn] = came
            self._early_peak = max(self._early_peak, len(self._early))
            self._acknowledge(now, port, psn24, NAK_SEQUENCE)
            return PLACED
        closes = bool(self._early)
        next_one: _Came | None = came
        while next_one is not None:
            if not self._in_order(now, *next_one):
                return self._refuse(now, port, psn24, MISMATCH)
            next_one = self._early.pop(self.expected, None)
        self._since_ack += 1
        if closes or flags & FLAG_ACK_REQUEST or self._since_ack >= self._ack_every:
            self._acknowledge(now, port, psn24)
        return PLACED

    def stop(self) -> None:
        """The QP is destroyed or has failed."""
        self._early.clear()

    def _is_possible(self, opcode: int, size: int, length: int) -> bool:
        """Whether a packet of this kind can have this payload in a message of this length."""
        if opcode in (RC_WRITE_FIRST, RC_WRITE_MIDDLE):
            return size == self._mtu < length
        return 0 < size <= self._mtu and (size == length if opcode in RC_STARTS else size < length)

    def _in_order(self, now: Instant, opcode: int, size: int, length: int, imm: int | None) -> bool:
        """The packet expected next has come. False: it does not fit the message under way."""
        if opcode in RC_STARTS:
            if self._left:
                return False
            self._left = self._length = length
        elif length != self._length or not size <= self._left:
            return False
        self._left -= size
        if (self._left == 0) != (opcode in RC_ENDS):
            return False
        self.expected += 1
        if not self._left:
            self._complete(now, length, imm)
        return True
