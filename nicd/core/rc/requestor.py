"""The sending half of an RC QP: it cuts messages into packets and goes back to the first that is missing.

Owns segmentation, PSNs, the window, the time-out and completion. `selective` replaces what happens after a loss.
PSNs are unbounded integers inside, given to messages when they are posted; 24 bits of them travel.

An acknowledgement is cumulative: every packet up to its PSN has arrived, and a message whose last packet is among them
is complete. A NAK acknowledges everything before its PSN and asks for the rest again.

Time-outs run from the latest of: the oldest packet in flight was sent, or an acknowledgement moved the window. IBTA
9.7.5 (acknowledgements), 9.7.6.1.3 (time-out and retries).
"""

from collections import deque
from typing import Final, Protocol

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.wire.lrh_rc import LrhDataTemplate
from mrcfabric.wire.roce import RcDataTemplate
from mrcfabric.wire.roce_layout import (
    NAK_SEQUENCE,
    RC_WRITE_FIRST,
    RC_WRITE_LAST,
    RC_WRITE_LAST_IMM,
    RC_WRITE_MIDDLE,
    RC_WRITE_ONLY,
    RC_WRITE_ONLY_IMM,
)
from nicd.core.board import Board
from nicd.core.commands import PostWrite
from nicd.core.events import (
    STATUS_OK,
    STATUS_REMOTE_INVALID,
    STATUS_RETRY_EXCEEDED,
    WRITE,
    WRITE_WITH_IMM,
    Completion,
    Retransmit,
)
from nicd.core.lag import Lag
from nicd.core.memory import Region
from nicd.core.rc.dcqcn import Pace
from nicd.core.rc.posted import Posted
from nicd.core.rc.rc_stats import RcStats
from nicd.core.timers import Timer

HALF_PSN: Final = (PSN_MASK + 1) >> 1
TIMEOUT_UNIT_NS: Final = 4_096
"""IBTA 9.7.6.1.3: the unit of a QP's time-out."""
NACK: Final = "nack"
TIMEOUT: Final = "timeout"
_LAST_OPCODES: Final = ((RC_WRITE_ONLY, RC_WRITE_ONLY_IMM), (RC_WRITE_LAST, RC_WRITE_LAST_IMM))
"""Opcode of a message's last packet: [other packets came before it][it has an immediate]."""


class QpLike(Protocol):
    """What the halves of a QP ask of it."""

    qpn: int
    ports: int
    """Bit p: port p can carry its data."""

    def window_moved(self) -> None:
        """A packet may leave now that could not before."""
        ...

    def fail(self, now: Instant, status: str, reason: str) -> None:
        """The QP goes to ERROR: its oldest message ends with `status`."""
        ...

    def migrate(self, now: Instant) -> bool:
        """Go on by another path. False: there is none."""
        ...


def timeout_ns(exponent: int) -> int:
    """The time-out with this exponent; NEVER for 0, as IBTA has it."""
    return TIMEOUT_UNIT_NS << exponent if exponent else NEVER


class Requestor:
    """One QP's sending half, with go-back-N or go-back-0."""

    __slots__ = (
        "_again_cause", "_base", "_board", "_completed", "_end", "_high", "_limit", "_messages", "_mtu",
        "_next", "_out_max", "_pace", "_posted", "_psns_max", "_qp", "_queue", "_rc", "_retry_cnt", "_since_ns",
        "_stats", "_template", "_timeout_ns", "_timer", "_to_start", "_tries", "_una", "unfinished_peak",
    )  # fmt: skip

    def __init__(
        self, qp: QpLike, board: Board, rc: RcStats, template: RcDataTemplate | LrhDataTemplate, pace: Pace,
        psn_first: int, window_bytes: int,
    ) -> None:  # fmt: skip
        """`window_bytes`: payload in flight; 0: no bound."""
        settings = board.settings
        self._qp = qp
        self._board = board
        self._stats = board.stats
        self._rc = rc
        self._template = template
        self._pace = pace
        self._mtu = settings.mtu_bytes
        self._psns_max = settings.rc_psns_max
        self._out_max = window_bytes
        self._to_start = settings.rc_recovery == "go_back_0"
        self._una = self._next = self._high = self._end = self._limit = psn_first
        """PSNs: `_una` the oldest not acknowledged, `_next` the next to send, `_high` the first never sent, `_end`
        the first not given to a message, `_limit` the first that has not reached the NIC."""
        self._base = 0
        """Bytes given to the QP in all."""
        self._messages: deque[Posted] = deque()
        """Messages that are not complete."""
        self._queue: deque[Posted] = deque()
        """Those of them that have reached the NIC and have packets from `_next` on."""
        self._posted = Lag(board.timers, settings.host_post_ns, self._ready) if settings.host_post_ns else None
        self._completed = 0
        self._again_cause = NACK
        """Why the sender last went back."""
        self._timeout_ns = timeout_ns(settings.rc_timeout)
        self._retry_cnt = settings.rc_retry_cnt
        self._tries = 0
        """Time-outs since an acknowledgement last moved the window."""
        self.unfinished_peak = 0
        """The most messages that ever were posted and not complete."""
        self._since_ns: Instant = 0
        self._timer = Timer(board.timers, self._on_timer)

    # -- what others ask

    @property
    def unfinished(self) -> int:
        """Messages that are posted and not complete."""
        return len(self._messages)

    @property
    def tracked(self) -> int:
        """Packets of which there is a record each."""
        return 0

    @property
    def tracked_peak(self) -> int:
        """The most of them that there ever were."""
        return 0

    @property
    def inflight_packets(self) -> int:
        """Packets sent, or to be sent again, and not acknowledged; with go-back-0 those of the present pass."""
        return (self._next if self._to_start else self._high) - self._una

    @property
    def inflight_bytes(self) -> int:
        """Payload that is sent and not acknowledged."""
        return self._position(self._next) - self._position(self._una)

    @property
    def window_bytes(self) -> int:
        """Payload that may be in flight."""
        return self._out_max or self._psns_max * self._mtu

    @property
    def psn_next(self) -> int:
        """The PSN of the next packet that was never sent."""
        return self._high

    @property
    def acknowledged(self) -> int:
        """Every PSN below this one is acknowledged."""
        return self._una

    def set_timers(self, exponent: int | None, retry_cnt: int | None) -> None:
        """The QP becomes RTS with these; None: as the settings have it."""
        if exponent is not None:
            self._timeout_ns = timeout_ns(exponent)
        if retry_cnt is not None:
            self._retry_cnt = retry_cnt

    def take_template(self, template: RcDataTemplate | LrhDataTemplate) -> None:
        """The QP has another port."""
        self._template = template

    # -- posting

    def post(self, now: Instant, work: PostWrite, region: Region, view: memoryview) -> None:
        """Take a message; `view` is its bytes in `region`."""
        message = Posted(work, region, view, self._completed + len(self._messages), self._end, self._base)
        self._base += work.length
        self._end += -(-work.length // self._mtu)
        message.psn_last = self._end - 1
        region.readers += 1
        self._messages.append(message)
        self.unfinished_peak = max(self.unfinished_peak, len(self._messages))
        if self._posted is None:
            self._ready(now, message)
        else:
            self._posted.put(now, message)
        if self._timer.at_ns == NEVER:
            self._since_ns = now
            self._arm(now)

    def _ready(self, _now: Instant, message: Posted) -> None:
        """A message has reached the NIC: its packets may leave."""
        self._limit = message.psn_last + 1
        self._queue.append(message)
        self._qp.window_moved()

    # -- sending

    def has_packet(self) -> bool:
        """Whether a packet is left to send that the window allows."""
        return self._next < self._limit and self._fits()

    def _fits(self) -> bool:
        """Whether the window has room for the packet `_next`."""
        out = self._next - self._una
        if out >= self._psns_max:
            return False
        if not self._out_max or not out:
            return True
        message = self._queue[0]
        begin = (self._next - message.psn_first) * self._mtu
        end = message.base + min(begin + self._mtu, message.length)
        return end - self._position(self._una) <= self._out_max

    def emit(self, now: Instant, port: int) -> bytearray:
        """Build the next packet. Only after `has_packet`."""
        psn = self._next
        message = self._queue[0]
        if psn == self._una:
            self._since_ns = now
        self._next = psn + 1
        if psn == message.psn_last:
            self._queue.popleft()
        return self._build(now, psn, message, psn == message.psn_last or not self.has_packet())

    def _build(self, now: Instant, psn: int, message: Posted, ask: bool) -> bytearray:
        """The packet `psn` of a message, counted as sent at `now`."""
        size = min(self._mtu, message.length - (psn - message.psn_first) * self._mtu)
        packet = self._packet(psn, message, ask)
        stats = self._stats
        stats.data_packets += 1
        stats.payload_bytes += size
        if psn < self._high:
            stats.retransmits[self._again_cause] += 1
            stats.retransmitted_bytes += size
            if self._board.witness is not None:
                self._board.witness.sent_again(packet, self._again_cause)
        else:
            self._high = psn + 1
        pace = self._pace
        if pace.slowed:
            pace.sent(now, len(packet) + OVERHEAD_BYTES)
        return packet

    def _packet(self, psn: int, message: Posted, ask: bool) -> bytearray:
        """The bytes of the packet `psn` of a message."""
        offset = (psn - message.psn_first) * self._mtu
        size = min(self._mtu, message.length - offset)
        imm = message.imm if psn == message.psn_last else None
        opcode = RC_WRITE_MIDDLE if offset else RC_WRITE_FIRST
        if psn == message.psn_last:
            opcode = _LAST_OPCODES[offset > 0][imm is not None]
        return self._template.make(
            opcode, psn & PSN_MASK, message.view[offset : offset + size], message.remote_va + offset, message.r_key,
            message.length, ask, imm,
        )  # fmt: skip

    # -- acknowledgements

    def on_ack(self, now: Instant, psn24: int, syndrome: int, cause24: int) -> bool:
        """Take an acknowledgement or a NAK. False: nonsense, dropped. `cause24`: only "selective" has it."""
        first = psn24 if syndrome >= NAK_SEQUENCE else psn24 + 1 & PSN_MASK
        if syndrome == NAK_SEQUENCE:
            self._rc.naks_received += 1
            if self._to_start and self._restart(now, psn24):
                return True
        ahead = (first - self._una) & PSN_MASK
        if ahead >= HALF_PSN:
            # IBTA 9.7.5.1: an acknowledgement of what is acknowledged already says nothing.
            return True
        first = self._una + ahead
        if first > self._high or (syndrome >= NAK_SEQUENCE and first == self._high):
            return False
        if ahead:
            self._advance(now, first)
        if syndrome > NAK_SEQUENCE:
            self._qp.fail(now, STATUS_REMOTE_INVALID, "remote_invalid_request")
        elif syndrome == NAK_SEQUENCE:
            self._asked(now, first)
        return True

    def _asked(self, now: Instant, psn: int) -> None:
        """The peer misses this packet, and has dropped all that came behind it."""
        self._go_back(now, psn, NACK)

    def was_sent(self, psn24: int) -> bool:
        """Whether a packet with that PSN may be in flight. A refusal of an earlier QP's must not end this one."""
        return (psn24 - self._una) & PSN_MASK < self._high - self._una

    def _advance(self, now: Instant, first: int) -> None:
        """Everything below `first` has arrived."""
        self._una = first
        self._since_ns = now
        self._tries = 0
        messages = self._messages
        while messages and messages[0].psn_last < first:
            self._completed += 1
            self._finish(now, messages.popleft(), STATUS_OK)
        if self._next < first:
            self._skip_to(first)
        if not messages:
            self._timer.cancel()
        self._qp.window_moved()

    def _skip_to(self, first: int) -> None:
        """Do not send again what has arrived after all."""
        self._next = first
        queue = self._queue
        while queue and queue[0].psn_last < first:
            queue.popleft()

    def _go_back(self, now: Instant, psn: int, cause: str) -> None:
        """Send again from `psn` on."""
        count = self._next - psn
        if count <= 0:
            return
        self._again_cause = cause
        self._next = psn
        self._queue = deque(message for message in self._messages if psn <= message.psn_last < self._limit)
        self._rc.passes_begun += 1
        self._stats.packets_lost += count
        self._board.tell(Retransmit(now, self._qp.qpn, cause, count))
        self._qp.window_moved()

    def _restart(self, now: Instant, psn24: int) -> bool:
        """Send a whole message again if `psn24` begins one (go-back-0): the receiver has forgotten its packets."""
        for message in self._messages:
            if message.psn_first >= self._high:
                break
            if message.psn_first & PSN_MASK == psn24:
                if message.psn_first > self._una:
                    self._advance(now, message.psn_first)
                self._una = message.psn_first
                self._since_ns = now
                self._tries = 0
                self._go_back(now, message.psn_first, NACK)
                return True
        return False

    # -- silence

    def _arm(self, now: Instant) -> None:
        if self._timeout_ns < NEVER:
            self._timer.set(now + self._timeout_ns)

    def _on_timer(self, now: Instant) -> None:
        if not self._messages:
            return
        due_ns = self._since_ns + self._timeout_ns
        if now < due_ns:
            self._timer.set(due_ns)
            return
        # What waits for its turn, its rate or a paused port has not been lost; what has no port has.
        if self._next > self._una or not self._qp.ports:
            self._tries += 1
            self._stats.timeouts += 1
            if self._tries > self._retry_cnt:
                if not self._qp.migrate(now):
                    self._qp.fail(now, STATUS_RETRY_EXCEEDED, "retry_exceeded")
                    return
                self._tries = 0
            self._go_back(now, self._una, TIMEOUT)
        self._since_ns = now
        self._arm(now)

    # -- the end of messages

    def flush(self, now: Instant, first: str, rest: str) -> None:
        """The QP has failed or goes away: the oldest message ends with status `first`, the others with `rest`."""
        self._timer.cancel()
        if self._posted is not None:
            self._posted.clear()
        self._queue.clear()
        self._limit = self._next
        status = first
        while self._messages:
            self._finish(now, self._messages.popleft(), status)
            status = rest

    def _finish(self, now: Instant, message: Posted, status: str) -> None:
        message.region.readers -= 1
        opcode = WRITE if message.imm is None else WRITE_WITH_IMM
        self._board.complete(Completion(now, self._qp.qpn, message.wr_id, status, opcode, message.length, message.imm))

    def _position(self, psn: int) -> int:
        """Bytes of the QP before the packet `psn`."""
        for message in self._messages:
            if psn <= message.psn_last:
                return message.base + (psn - message.psn_first) * self._mtu
        return self._base
