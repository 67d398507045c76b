"""The receiving half of an RC QP: placement in order, completion, and when which acknowledgement is sent.

Owns the PSN expected next, the message under way, the one NAK per gap, and the count of packets not yet acknowledged.
`selective_responder` keeps what comes early.

A packet behind a gap is dropped. The first of them is answered by a NAK; `rc_nak_passes` and `rc_nak_interval_ns` say
when there is another one. Only a message's first packet has its address. So everything behind depends on the order.

IBTA 9.7.4 (responder), 9.7.5 (acknowledgements).
"""

from typing import Final, Protocol

from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.wire.roce import read_rc_imm, read_reth
from mrcfabric.wire.roce_layout import (
    FLAG_ACK_REQUEST,
    NAK_INVALID_REQUEST,
    NAK_REMOTE_ACCESS,
    NAK_SEQUENCE,
    RC_ACK_SYNDROME,
    RC_ENDS,
    RC_IMM_OPCODES,
    RC_STARTS,
    RC_WRITE_FIRST,
    RC_WRITE_MIDDLE,
)
from nicd.core.board import Board
from nicd.core.events import RECV_WITH_IMM, STATUS_FLUSHED, STATUS_OK, Completion
from nicd.core.rc.rc_stats import OUT_OF_SEQUENCE, RcStats
from nicd.core.rc.requestor import HALF_PSN, QpLike
from nicd.core.stats import PLACED, REPEATED

MISMATCH: Final = "message_mismatch"
MEMORY: Final = "memory"


class AnswerLike(Protocol):
    """The way back to the peer."""

    def ack(self, now: Instant, port: int, psn24: int, msn24: int, syndrome: int, cause24: int) -> bool:
        """Send an acknowledgement by the port if it has carrier, or as the QP's own packets go. False: no port."""
        ...


class Responder:
    """One QP's receiving half, with go-back-N or go-back-0."""

    __slots__ = (
        "_ack_every", "_answer", "_asked_ns", "_board", "_first", "_gap_open", "_interval_ns", "_key", "_left",
        "_length", "_mtu", "_passed", "_passes", "_qp", "_rc", "_since_ack", "_stats", "_to_start", "_va",
        "bytes_placed", "completed", "duplicates", "expected",
    )  # fmt: skip

    def __init__(self, qp: QpLike, board: Board, rc: RcStats, answer: AnswerLike, psn_first: int) -> None:
        settings = board.settings
        self._qp = qp
        self._board = board
        self._stats = board.stats
        self._rc = rc
        self._answer = answer
        self._mtu = settings.mtu_bytes
        self._ack_every = settings.rc_ack_every or PSN_MASK
        self._passes = settings.rc_nak_passes
        self._interval_ns = settings.rc_nak_interval_ns
        self._to_start = settings.rc_recovery == "go_back_0"
        self.expected = self._first = psn_first
        """PSN of the next packet in order; `_first` that of the first packet of the message under way."""
        self._left = 0
        """Bytes of the message under way that have not come; 0: none is under way."""
        self._va = self._key = self._length = 0
        """Where the next packet goes, and how long the message is."""
        self._since_ack = 0
        """Packets in order since the last acknowledgement."""
        self._gap_open = False
        """Whether a NAK has been sent for `expected`."""
        self._passed = 0
        """How far behind the gap the last packet was; HALF_PSN: before the gap."""
        self._asked_ns: Instant = 0
        """When the last NAK was sent."""
        self.completed = 0
        """Messages complete."""
        self.bytes_placed = self.duplicates = 0
        """What this QP adds to the NIC's counters of these names."""

    @property
    def untouched(self) -> bool:
        """Whether nothing has been received yet."""
        return not self.bytes_placed

    @property
    def early(self) -> int:
        """Packets kept that came before their turn."""
        return 0

    @property
    def early_peak(self) -> int:
        """The most of them that ever were kept."""
        return 0

    def on_data(
        self, now: Instant, port: int, packet: Buffer, opcode: int, psn24: int, flags: int, start: int, size: int
    ) -> str:
        """Take a data packet with a good ICRC. Returns one of `stats.OUTCOMES`, or the reason of a drop."""
        ahead = (psn24 - self.expected) & PSN_MASK
        if ahead:
            if ahead < HALF_PSN:
                return self._behind_gap(now, port, psn24, ahead)
            return self._repeated(now, port, psn24, flags)
        left = self._left
        if opcode in RC_STARTS:
            va, key, length = read_reth(packet, opcode, start)
            whole = opcode != RC_WRITE_FIRST
            if left or not length or (size != length if whole else size != self._mtu or length <= size):
                return self._refuse(now, port, psn24, MISMATCH)
            left = length
        elif left <= 0 or (size != self._mtu or left <= size if opcode == RC_WRITE_MIDDLE else size != left):
            return self._refuse(now, port, psn24, MISMATCH)
        else:
            va, key, length = self._va, self._key, self._length
        if not self._board.memory.place(key, va, memoryview(packet)[start : start + size]):
            return self._refuse(now, port, psn24, MEMORY)
        if opcode in RC_STARTS:
            self._first = self.expected
            self._key = key
            self._length = length
        self._va = va + size
        self._left = left - size
        if not self._to_start:
            self._placed(now, port, size)
        elif left == size:
            # Go-back-0: what may still be forgotten is not there.
            self._placed(now, port, length)
        self.expected += 1
        self._gap_open = False
        if opcode in RC_ENDS:
            self._complete(now, length, read_rc_imm(packet, start) if opcode in RC_IMM_OPCODES else None)
        self._since_ack += 1
        if flags & FLAG_ACK_REQUEST or self._since_ack >= self._ack_every:
            self._acknowledge(now, port, psn24)
        return PLACED

    def stop(self) -> None:
        """The QP is destroyed or has failed."""

    # -- what every arrival may cause

    def _placed(self, now: Instant, port: int, size: int) -> None:
        """Count new bytes."""
        self._stats.bytes_placed += size
        self.bytes_placed += size
        self._board.bins.add(now, port, size)

    def _complete(self, now: Instant, length: int, imm: int | None) -> None:
        """A message is whole, and so are all before it."""
        number = self.completed & 0xFFFF
        self.completed += 1
        self._stats.messages_completed += 1
        if imm is not None:
            self._board.complete(Completion(now, self._qp.qpn, number, STATUS_OK, RECV_WITH_IMM, length, imm))

    def _acknowledge(self, now: Instant, port: int, cause24: int, syndrome: int = RC_ACK_SYNDROME) -> None:
        """Say what has arrived in order; as a NAK: that the next packet is missing."""
        psn = self.expected if syndrome >= NAK_SEQUENCE else self.expected - 1
        self._since_ack = 0
        if self._answer.ack(now, port, psn & PSN_MASK, self.completed & PSN_MASK, syndrome, cause24):
            if syndrome == NAK_SEQUENCE:
                self._rc.naks_sent += 1
                self._stats.nacks_sent += 1
            elif syndrome == RC_ACK_SYNDROME:
                self._stats.acks_sent += 1
            else:
                self._rc.access_naks_sent += 1

    def _repeated(self, now: Instant, port: int, psn24: int, flags: int) -> str:
        """A packet that has been placed already."""
        self._stats.duplicates += 1
        self.duplicates += 1
        # It shows that the sender has gone back to before the gap.
        self._passed = HALF_PSN
        # IBTA 9.7.5.1: acknowledge again, because the acknowledgement may have been lost.
        self._since_ack += 1
        if flags & FLAG_ACK_REQUEST or self._since_ack >= self._ack_every:
            self._acknowledge(now, port, psn24)
        return REPEATED

    def _behind_gap(self, now: Instant, port: int, psn24: int, ahead: int) -> str:
        """Drop a packet that comes before its turn; ask for the one that is missing, if that is due."""
        self._rc.out_of_sequence += 1
        if self._due(now, ahead):
            if self._to_start and self._left:
                self._forget()
            self._acknowledge(now, port, psn24, NAK_SEQUENCE)
        return self._stats.drop(OUT_OF_SEQUENCE)

    def _due(self, now: Instant, ahead: int) -> bool:
        """Whether a packet so far behind the gap is answered by a NAK."""
        again = self._passes and ahead <= self._passed
        late = self._interval_ns and now >= self._asked_ns + self._interval_ns
        self._passed = ahead
        if self._gap_open and not again and not late:
            return False
        self._gap_open = True
        self._asked_ns = now
        return True

    def _forget(self) -> None:
        """Begin the message under way anew (go-back-0)."""
        # The packets that follow on this pass count from the new place.
        self._passed += self.expected - self._first
        self.expected = self._first
        self._left = 0

    def _refuse(self, now: Instant, port: int, psn24: int, reason: str) -> str:
        """The peer asked for something that is not allowed: tell it so, and fail the QP."""
        self._acknowledge(now, port, psn24, NAK_REMOTE_ACCESS if reason == MEMORY else NAK_INVALID_REQUEST)
        self._stats.drop(reason)
        self._qp.fail(now, STATUS_FLUSHED, "memory_access" if reason == MEMORY else reason)
        return reason
