"""The receiving half of a UET context: placement by offset in any order, or in order, and which answer goes when.

Owns the window of PSNs, the messages under way, the bytes and the time since the last acknowledgement. Every packet
says where its bytes belong, so it is placed when it comes. A message is answered by a response when it is whole; its
immediate is handed to the host in the order of PSNs, which UET leaves open and programs rely on.

An acknowledgement shows 64 PSNs. It goes when enough bytes have come, when one waits long enough, when it is asked for,
and at once for a marked packet, a duplicate, a whole message, or a packet that would not fit the bitmap of the next.
UEC PDS (ACK, SACK bitmap, NACK codes), UEC SES (responses).
"""

from typing import Final

from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.uet import Write, read_write
from mrcfabric.wire.uet_layout import (
    BITMAP_PSNS,
    CC_CREDIT,
    CC_NSCC,
    CONTROL_CLEAR_REQUEST,
    CONTROL_CLOSE_REQUEST,
    CONTROL_CREDIT,
    COUNT_MASK,
    CREDIT_UNIT,
    FLAG_AR,
    FLAG_CLEAR,
    FLAG_MARKED,
    FLAG_PROBE,
    FLAG_RETX,
    NACK_NO_RESPONSE,
    NACK_OUT_OF_ORDER,
    NACK_OUT_OF_WINDOW,
    NACK_TRIMMED,
    NACK_TRIMMED_LAST_HOP,
    PSN_MASK_UET,
    RC_BAD_KEY,
    RC_OK,
    RC_OUT_OF_RANGE,
    RESPONSE,
    RESPONSE_DEFAULT,
    SERVICE_TICK_NS,
    SES_HD,
)
from mrcfabric.wire.uet_templates import credit_state, nscc_state
from nicd.core.board import Board
from nicd.core.events import RECV_WITH_IMM, STATUS_OK, Completion
from nicd.core.stats import PLACED, REPEATED, TRIMMED
from nicd.core.timers import Timer
from nicd.core.uet.kept import Kept, Response
from nicd.core.uet.peer import UetPeer
from nicd.core.uet.uet_stats import NO_RESPONSE, OUT_OF_ORDER, UetStats
from nicd.core.uet.under_way import Arrival, Under, UnderWay

HALF_PSN: Final = 1 << 31
_SERVICE_MAX: Final = 0xFFFF
_PACKET_LEAST: Final = 1024
"""A packet counts at least so many bytes towards the next acknowledgement."""


class Target:
    """One context, as its receiving end has it."""

    __slots__ = (
        "_ack_bytes", "_board", "_delay_ns", "_entropy", "_gap_open", "_high", "_low", "_mpr", "_mtu", "_passed",
        "_port", "_since_bytes", "_stats", "_stopped", "_timer", "_uet", "_waiting", "asked_ns", "bitmap",
        "bytes_placed", "cleared", "completed", "duplicates", "early_peak", "expected", "first", "heard_ns",
        "initiates", "kept", "messages", "ordered", "pdcid", "peer", "peer_pdcid", "qpn", "qpn_peer",
    )  # fmt: skip

    def __init__(
        self, board: Board, uet: UetStats, peer: UetPeer, peer_pdcid: int, qpn: int, qpn_peer: int, psn_first: int,
        ordered: bool,
    ) -> None:  # fmt: skip
        settings = board.settings
        self._board = board
        self._stats = board.stats
        self._uet = uet
        self.peer = peer
        self.peer_pdcid = peer_pdcid
        self.pdcid = 0
        self.initiates = False
        self.qpn = qpn  # that it serves; `qpn_peer`: that at the initiator
        self.qpn_peer = qpn_peer
        self._mtu = settings.mtu_bytes
        self._mpr = settings.mpr_units
        self.ordered = ordered
        self._ack_bytes = settings.sack_bytes
        self._delay_ns = settings.sack_delay_ns
        self.first = psn_first
        """First PSN of the context."""
        self.expected = psn_first
        """Everything before has arrived."""
        self.bitmap = 0
        """Bit i: expected + i has arrived; bit 0 is never set."""
        self.cleared = psn_first - 1
        """The initiator has no questions about anything up to here."""
        self.kept = Kept(settings.uet_responses_max)
        self.messages = UnderWay(self._mtu, qpn, qpn_peer)
        self._waiting: Arrival | None = None
        """The packet that the next acknowledgement answers; None: none is due."""
        self._port = self._entropy = 0
        """By which the last packet came, and what it carried: those of control packets."""
        self._since_bytes = 0
        self._low = self._high = psn_first
        """PSNs that no acknowledgement has shown yet lie from `_low` to `_high`."""
        self._gap_open = False
        self._passed = 0
        """Ordered: whether a NACK was sent for `expected`, and how far behind the gap the last packet was."""
        self._timer = Timer(board.timers, self._late)
        self._stopped = False
        self.bytes_placed = self.duplicates = self.completed = self.early_peak = 0
        self.heard_ns: Instant = -1
        self.asked_ns: Instant = -1 << 60  # to close it

    @property
    def early(self) -> int:
        """Packets held out of order."""
        return self.bitmap.bit_count()

    @property
    def idle(self) -> bool:
        """Whether no message is under way, as far as packets have come."""
        return not self.messages and not self.bitmap and self._waiting is None

    def ask_to_close(self, now: Instant) -> None:
        """Ask the initiator to close the context: its room is wanted."""
        self.asked_ns = now
        self._control(now, CONTROL_CLOSE_REQUEST, 0)

    def grant(self, now: Instant, count24: int) -> bool:
        """Tell the initiator all that it was ever granted. False: the context is gone."""
        return not self._stopped and self._control(now, CONTROL_CREDIT, count24)

    def _control(self, now: Instant, kind: int, payload: int) -> bool:
        packet = self.peer.template.control(self._entropy, kind, 0, 0, self.pdcid, self.peer_pdcid, payload)
        sent = self.peer.send(now, self._port, packet)
        self._uet.controls_sent += sent
        return sent

    # -- requests

    def on_request(
        self, now: Instant, port: int, packet: Buffer, entropy: int, flags: int, clear: int, psn32: int, ses: int,
        start: int, size: int, marked: bool, last_hop: bool,
    ) -> str:  # fmt: skip
        """Take a request on this context. Returns one of `stats.OUTCOMES`, or the reason of a drop."""
        self.heard_ns = now
        self._port, self._entropy = port, entropy
        ahead = (psn32 - self.expected) & PSN_MASK_UET
        behind = ahead - 2 * HALF_PSN if ahead >= HALF_PSN else ahead
        self._clear(self.expected + behind + (clear if clear < 1 << 15 else clear - (1 << 16)))
        if behind < 0:
            return self._repeated(now, port, entropy, flags, self.expected + behind, marked, size)
        if ahead >= self._mpr * 128:
            self._nack(now, port, entropy, flags, NACK_OUT_OF_WINDOW, psn32, marked)
            return self._stats.drop("psn_window")
        psn = self.expected + ahead
        if self.bitmap >> ahead & 1:
            return self._repeated(now, port, entropy, flags, psn, marked, size)
        if ahead and self.ordered:
            return self._behind_gap(now, port, entropy, flags, psn32, ahead, marked)
        if size < 0:
            self._nack(now, port, entropy, flags, NACK_TRIMMED_LAST_HOP if last_hop else NACK_TRIMMED, psn32, marked)
            return TRIMMED
        write = read_write(packet, ses)
        if (kept := self.kept.find(psn)) is not None:
            return self._refused_again(now, port, entropy, flags, psn, write.message_id, kept)
        under = self.messages.find(write, psn, size)
        if isinstance(under, int):
            return self._refuse(now, port, entropy, flags, psn, write, under, "message_mismatch")
        if ahead and under.left == size and self.kept.full:
            return self._no_room(now, port, entropy, flags, psn32, marked)
        payload = memoryview(packet)[start : start + size]
        if not self._board.memory.place(write.key, write.offset + write.message_offset, payload):
            known = write.key in self._board.memory.by_key
            code = RC_OUT_OF_RANGE if known else RC_BAD_KEY
            return self._refuse(now, port, entropy, flags, psn, write, code, "memory")
        self.messages.begin(write.message_id, under)
        self._placed(now, port, size)
        self._arrived(ahead)
        if write.flags & SES_HD:
            under.imm = write.data & 0xFFFFFFFF
        under.left -= size
        answers = flags & FLAG_RETX | (FLAG_MARKED if marked else 0)
        arrival = Arrival(now, port, entropy, psn, answers, write.message_id)
        if not under.left:
            self._message_whole(now, write, under)
            self._merge(now, arrival)
            response = (RESPONSE, RC_OK, write.message_id, write.generation_job, under.length)
            # Where there is no room, the packet was the one that all waited for: the cumulative PSN says as much.
            if not self.kept.full:
                self.kept.keep(psn, response)
            self._acknowledge(now, arrival, response)
        else:
            self._in_order(now)
            self._due(now, arrival, size, bool(flags & FLAG_AR) or marked or bool(flags & FLAG_RETX))
        return PLACED

    def _placed(self, now: Instant, port: int, size: int) -> None:
        self._stats.bytes_placed += size
        self.bytes_placed += size
        self._board.bins.add(now, port, size)

    def _arrived(self, ahead: int) -> None:
        """Set the bit of a new packet, and move on over all that is in order."""
        self._gap_open = False
        if ahead:
            self._stats.ahead.add(ahead)
            self._uet.early_packets += 1
            self.bitmap |= 1 << ahead
            self.early_peak = max(self.early_peak, self.early)
        else:
            run = self.bitmap | 1
            moved = (~run & (run + 1)).bit_length() - 1
            self.expected += moved
            self.bitmap = run >> moved

    def _message_whole(self, now: Instant, write: Write, under: Under) -> None:
        self.messages.end(write.message_id, under)
        self.completed += 1
        self._stats.messages_completed += 1
        self._in_order(now)

    def _in_order(self, now: Instant) -> None:
        """Hand over the immediates whose turn has come."""
        for number, length, imm in self.messages.in_turn(self.expected):
            self._board.complete(Completion(now, self.qpn, number, STATUS_OK, RECV_WITH_IMM, length, imm))

    # -- answers

    def _due(self, now: Instant, arrival: Arrival, size: int, at_once: bool) -> None:
        """An acknowledgement is due for one more packet, now or a little later."""
        fresh = self._merge(now, arrival)
        self._since_bytes += max(size, _PACKET_LEAST)
        if at_once or self._since_bytes >= self._ack_bytes:
            self._acknowledge(now, arrival)
        elif fresh:
            self._timer.set(now + self._delay_ns)

    def _merge(self, now: Instant, arrival: Arrival) -> bool:
        """The next acknowledgement answers this packet, and shows those that wait. Returns whether none did."""
        waiting, psn = self._waiting, arrival.psn
        low, high = min(self._low, psn), max(self._high, psn)
        if waiting is not None and high - max(low, self.expected) >= BITMAP_PSNS:
            # One bitmap cannot show them all: show those that wait first.
            self._acknowledge(now, waiting)
            waiting = None
        if waiting is None:
            low = high = psn
        self._low, self._high, self._waiting = low, high, arrival
        return waiting is None

    def _late(self, now: Instant) -> None:
        if self._waiting is not None:
            self._acknowledge(now, self._waiting)

    def _acknowledge(
        self, now: Instant, arrival: Arrival, response: Response | None = None,
        extra: int = 0, field: int | None = None, base: int | None = None, keep: bool = False,
    ) -> None:  # fmt: skip
        """Say what has arrived. `field`, `base`: what the answer to a probe has in these places.

        `keep`: packets that wait for their acknowledgement go on waiting.
        """
        cack = self.expected - 1
        if base is None:
            base = max(self.expected, min(self._low, arrival.psn))
        shift = base - self.expected
        bitmap = self.bitmap >> shift if shift >= 0 else self.bitmap << -shift | (1 << -shift) - 1
        early = min(self.early, 0xFFFF)
        service = min((now - arrival.at_ns) // SERVICE_TICK_NS, _SERVICE_MAX)
        kind, state = CC_NSCC, nscc_state(service, 0, self.bytes_placed // CREDIT_UNIT & COUNT_MASK, early)
        credit = self.peer.credited()
        if credit is not None:
            kind, state = CC_CREDIT, credit_state(credit, early)
        if field is None:
            field = max(-(1 << 15), min(arrival.psn - cack, (1 << 15) - 1))
        if response is None:
            response = (RESPONSE_DEFAULT, RC_OK, arrival.message_id, 1, 0)
        flags = arrival.flags | extra
        if self.kept.pressing:
            flags |= FLAG_CLEAR
            self._uet.clears_asked += 1
        packet = self.peer.template.ack(
            arrival.entropy, flags, field, cack & PSN_MASK_UET, self.pdcid, self.peer_pdcid, kind, min(self._mpr, 255),
            max(-(1 << 15), min(base - cack, (1 << 15) - 1)), bitmap & (1 << BITMAP_PSNS) - 1, state, response,
        )  # fmt: skip
        if not keep:
            self._waiting = None
            self._since_bytes = 0
            self._timer.cancel()
        if self.peer.send(now, arrival.port, packet):
            self._stats.acks_sent += 1
            if response[0] == RESPONSE:
                self._uet.responses_sent += response[1] == RC_OK
                self._uet.responses_refused += response[1] != RC_OK

    def _nack(self, now: Instant, port: int, entropy: int, flags: int, code: int, psn32: int, marked: bool) -> None:
        answers = flags & FLAG_RETX | (FLAG_MARKED if marked else 0)
        payload = self.expected & PSN_MASK_UET
        packet = self.peer.template.nack(entropy, answers, code, psn32, self.pdcid, self.peer_pdcid, payload)
        if self.peer.send(now, port, packet):
            self._stats.nacks_sent += 1
            self._uet.nack_sent(code)

    def _refuse(
        self, now: Instant, port: int, entropy: int, flags: int, psn: int, write: Write, code: int, reason: str
    ) -> str:
        """What a packet asks for is not allowed: say so in a response, and do not count it as arrived."""
        if self.kept.full:
            return self._no_room(now, port, entropy, flags, psn & PSN_MASK_UET, False)
        arrival = Arrival(now, port, entropy, psn, flags & FLAG_RETX, write.message_id)
        response = (RESPONSE, code, write.message_id, write.generation_job, 0)
        self.kept.keep(psn, response, reason)
        self._acknowledge(now, arrival, response, keep=True)
        return self._stats.drop(reason)

    def _refused_again(
        self, now: Instant, port: int, entropy: int, flags: int, psn: int, message_id: int, kept: tuple[Response, str]
    ) -> str:
        """A packet that was refused stays refused, whatever has changed since: its response was lost."""
        response, reason = kept
        self._uet.responses_repeated += 1
        self._acknowledge(now, Arrival(now, port, entropy, psn, flags & FLAG_RETX, message_id), response, keep=True)
        return self._stats.drop(reason)

    def _no_room(self, now: Instant, port: int, entropy: int, flags: int, psn32: int, marked: bool) -> str:
        """No other response can be kept: the packet has to come again, and some must be cleared."""
        self._nack(now, port, entropy, flags, NACK_NO_RESPONSE, psn32, marked)
        if self._control(now, CONTROL_CLEAR_REQUEST, 0):
            self._uet.clears_asked += 1
        return self._stats.drop(NO_RESPONSE)

    def _clear(self, last: int) -> None:
        if self.cleared < last < self.expected:
            self.cleared = last
            self.kept.clear(last)

    def on_clear(self, now: Instant, last32: int) -> None:
        """The initiator has no more questions about PSNs up to this one."""
        self.heard_ns = now
        ahead = (last32 - self.expected) & PSN_MASK_UET
        self._clear(self.expected + (ahead if ahead < HALF_PSN else ahead - 2 * HALF_PSN))

    def _repeated(self, now: Instant, port: int, entropy: int, flags: int, psn: int, marked: bool, size: int) -> str:
        """A packet that is here already: its acknowledgement may have been lost."""
        if size >= 0:
            self._stats.duplicates += 1
            self.duplicates += 1
            # An ordered sender has gone back to before the gap.
            self._passed = HALF_PSN
        answers = flags & FLAG_RETX | (FLAG_MARKED if marked else 0)
        response, _ = self.kept.find(psn) or (None, "")
        self._uet.responses_repeated += response is not None
        arrival = Arrival(now, port, entropy, psn, answers, 0)
        self._merge(now, arrival)
        self._acknowledge(now, arrival, response)
        return REPEATED if size >= 0 else TRIMMED

    def _behind_gap(
        self, now: Instant, port: int, entropy: int, flags: int, psn32: int, ahead: int, marked: bool
    ) -> str:
        """Ordered: drop a packet before its turn; ask once for the missing one each time the sender passes the gap."""
        if not self._gap_open or ahead <= self._passed:
            self._gap_open = True
            self._nack(now, port, entropy, flags, NACK_OUT_OF_ORDER, psn32, marked)
        self._passed = ahead
        return self._stats.drop(OUT_OF_ORDER)

    def on_probe(self, now: Instant, port: int, entropy: int, opaque: int, base32: int) -> None:
        """The initiator asks what has arrived from a PSN on."""
        ahead = (base32 - self.expected) & PSN_MASK_UET
        base = self.expected + (ahead if ahead < HALF_PSN else ahead - 2 * HALF_PSN)
        self.heard_ns = now
        self._stats.probes_answered += 1
        arrival = Arrival(now, port, entropy, self.expected - 1, 0, 0)
        field = opaque if opaque < 1 << 15 else opaque - (1 << 16)
        self._acknowledge(now, arrival, None, FLAG_PROBE, field, max(base, self.expected - BITMAP_PSNS), True)

    def on_ack_request(self, now: Instant, port: int, entropy: int) -> None:
        """The initiator asks for an acknowledgement."""
        self._acknowledge(now, self._waiting or Arrival(now, port, entropy, self.expected - 1, 0, 0))

    def on_close(self, now: Instant, port: int, entropy: int, psn32: int) -> None:
        """The initiator closes the context, which takes the PSN behind its last packet: acknowledge that."""
        arrival = Arrival(now, port, entropy, self.expected - 1, 0, 0)
        ahead = (psn32 - self.expected) & PSN_MASK_UET
        if not ahead:
            self.expected += 1
            arrival.psn += 1
        self._acknowledge(now, arrival)

    def stop(self) -> None:
        """The context is gone."""
        self._stopped = True
        self._timer.cancel()
        self._waiting = None
