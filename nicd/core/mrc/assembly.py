"""The messages that a responder is receiving: which packet belongs to which, which are whole, and which is next.

Owns the records of messages begun and not finished, the checks that a packet fits its message (place, length, key,
range of PSNs), the order of completions and the stash of early immediates. `sack` knows which PSNs have arrived,
`memory` holds the bytes, and `responder` sends acknowledgements.

MRC 1.0 section 3: every packet says where its message lies and how long it is, so the first packet to come opens the
record, whichever it is. WRITEs are complete as soon as they are whole. With-immediate messages are complete in the
order of sending, after everything before them. RQMSN gives an early immediate its slot.
"""

from typing import Final

from mrcfabric.wire.layout import WRITE_FIRST, WRITE_LAST_IMM, WRITE_MIDDLE

MISMATCH: Final = "message_mismatch"
"""A packet contradicts its message, or its message contradicts those around it."""
FULL: Final = "no_resource"
"""No room for another record."""
OVERFLOW: Final = "immediates_overflow"
"""More early immediates than were agreed."""

_FAR: Final = 1 << 80
"""Beyond every PSN."""
_HALF_RQMSN: Final = 0x7FFF


class Incoming:
    """One message on its way in. PSNs are unbounded integers."""

    __slots__ = (
        "anchor", "done", "first", "high", "imm", "last", "left", "length", "low", "msn", "r_key", "rqmsn", "size_last",
    )  # fmt: skip

    def __init__(self, msn: int, rqmsn: int, anchor: int, r_key: int, length: int, mtu: int) -> None:
        self.msn = msn
        self.rqmsn = rqmsn
        self.anchor = anchor
        """VA - PSN * MTU, which is the same for every packet of a message."""
        self.r_key = r_key
        self.length = length
        self.left = -(-length // mtu)
        """Packets that have not arrived."""
        self.size_last = length - (self.left - 1) * mtu
        self.first = -1
        self.last = -1
        """`first` and `last` are the PSNs of the first and the last packet; -1 until one of the two has arrived."""
        self.low = _FAR
        self.high = -1
        """`low` and `high`: lowest and highest PSN of packets that came before the ends were known."""
        self.imm = -1
        self.done = False
        """The message was complete early, and the peer has been told."""


class Assembly:
    """All messages of one QP that are not complete in order."""

    __slots__ = ("_messages_max", "_mtu", "_next_first", "_next_rqmsn", "_open", "_wimm_max", "completed", "fault",
                 "records_peak", "stashed", "stashed_peak")  # fmt: skip

    def __init__(self, psn_first: int, mtu_bytes: int, messages_max: int, wimm_max: int) -> None:
        """`messages_max`: records; `wimm_max`: early immediates, in slots counted from the next one due."""
        self._mtu = mtu_bytes
        self._messages_max = messages_max
        self._wimm_max = wimm_max
        self._open: dict[int, Incoming] = {}
        """MSN (16 bits) -> record."""
        self._next_first = psn_first
        """First PSN of the next message in order."""
        self._next_rqmsn = 0
        self.completed = 0
        """Messages complete in order."""
        self.stashed = 0
        """Immediates that wait for the messages before them."""
        self.records_peak = 0
        self.stashed_peak = 0
        """The most records and stashed immediates that there ever were."""
        self.fault = ""
        """Why `admit`, `immediate`, `has_ends` or `next_whole` last refused."""

    @property
    def records(self) -> int:
        """Messages begun and not complete in order."""
        return len(self._open)

    def admit(
        self, psn: int, opcode: int, rqmsn: int, msn: int, va: int, r_key: int, length: int, size: int
    ) -> Incoming | None:
        """The message to which a new packet belongs. None: it does not fit, `fault` says why, nothing has changed."""
        mtu = self._mtu
        message = self._open.get(msn)
        if message is None:
            message = self._begin(psn, rqmsn, msn, va - psn * mtu, r_key, length)
            if message is None:
                return None
        elif length != message.length or va - psn * mtu != message.anchor or r_key != message.r_key:
            self.fault = MISMATCH
            return None
        if opcode == WRITE_MIDDLE:
            if size == mtu and (message.first < psn < message.last or message.last < 0):
                if message.last < 0:
                    if psn < message.low:
                        message.low = psn
                    if psn > message.high:
                        message.high = psn
                return message
        elif self._edge(message, psn, opcode, size):
            return message
        if message.last < 0 and message.high < 0:
            del self._open[msn]
        self.fault = MISMATCH
        return None

    def immediate(self, message: Incoming, rqmsn: int, imm: int) -> bool:
        """Keep the immediate of a message whose last packet is placed. False: refused; `fault` says why."""
        ahead = (rqmsn - self._next_rqmsn) & 0xFFFF
        # MRC 1.0 METH: the same RQMSN in all packets of a with-immediate message.
        if rqmsn != message.rqmsn or ahead > _HALF_RQMSN:
            self.fault = MISMATCH
            return False
        # MRC 1.0 section 3: early immediates wait in the slot of their RQMSN. The slots are bounded, but the next
        # immediate in order always has its place.
        if ahead > self._wimm_max or (ahead and self.stashed >= self._wimm_max):
            self.fault = OVERFLOW
            return False
        message.imm = imm
        self.stashed += 1
        self.stashed_peak = max(self.stashed_peak, self.stashed)
        return True

    def has_ends(self, message: Incoming) -> bool:
        """Whether a message with all its packets has a first and a last one among them; if not, sets `fault`."""
        if message.last < 0:
            self.fault = MISMATCH
        return message.last >= 0

    def next_whole(self) -> Incoming | None:
        """Take the next message in order if it is whole, else None. `fault` is set if it contradicts the order."""
        self.fault = ""
        message = self._open.get(self.completed & 0xFFFF)
        if message is None or message.left:
            return None
        if message.first != self._next_first or (message.imm >= 0 and message.rqmsn != self._next_rqmsn):
            self.fault = MISMATCH
            return None
        del self._open[message.msn]
        self.completed += 1
        self._next_first = message.last + 1
        if message.imm >= 0:
            self.stashed -= 1
            self._next_rqmsn = (self._next_rqmsn + 1) & 0xFFFF
        return message

    def number_of(self, message: Incoming) -> int | None:
        """The unbounded index of a message; None when it is complete in order."""
        if self._open.get(message.msn) is not message:
            return None
        return self.completed + ((message.msn - self.completed) & 0xFFFF)

    def _begin(self, psn: int, rqmsn: int, msn: int, anchor: int, r_key: int, length: int) -> Incoming | None:
        # Every earlier message has at least one PSN.
        if not length or (msn - self.completed) & 0xFFFF > psn - self._next_first:
            self.fault = MISMATCH
            return None
        # The next message in order always has room, because the others wait for it.
        if len(self._open) >= self._messages_max and msn != self.completed & 0xFFFF:
            self.fault = FULL
            return None
        message = self._open[msn] = Incoming(msn, rqmsn, anchor, r_key, length, self._mtu)
        self.records_peak = max(self.records_peak, len(self._open))
        return message

    def _edge(self, message: Incoming, psn: int, opcode: int, size: int) -> bool:
        """Take a packet that tells where its message begins or ends. False: it contradicts what is known."""
        packets = -(-message.length // self._mtu)
        if opcode == WRITE_FIRST:
            first = psn
            fits = size == self._mtu and packets > 1
        else:
            first = psn - packets + 1
            # A LAST packet has others before it, an ONLY packet has none.
            fits = size == message.size_last and (packets > 1) == (opcode <= WRITE_LAST_IMM)
        last = first + packets - 1
        if not fits or first < self._next_first:
            return False
        if message.last >= 0:
            return first == message.first
        if message.low <= first or message.high >= last:
            return False
        message.first = first
        message.last = last
        return True
