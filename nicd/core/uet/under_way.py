"""The messages of one context that a target has begun to receive: what belongs to which, what cannot be true, and
whose immediate is next.

Owns the checks of a request against its message. A packet has a full payload unless it is its message's last; offsets
and PSNs go together, so that every packet tells where its message ends. UEC SES (requests).
"""

from mrcfabric.units import Instant
from mrcfabric.wire.uet import Write
from mrcfabric.wire.uet_layout import PID_SHIFT, RC_BAD_INDEX, RC_UNSUPPORTED_SIZE, SES_EOM, SES_SOM


class Arrival:
    """The packet that the next acknowledgement answers."""

    __slots__ = ("at_ns", "entropy", "flags", "message_id", "port", "psn")

    def __init__(self, at_ns: Instant, port: int, entropy: int, psn: int, flags: int, message_id: int) -> None:
        self.at_ns = at_ns
        self.port = port
        self.entropy = entropy
        self.psn = psn
        self.flags = flags
        """Those of the answer."""
        self.message_id = message_id


class Under:
    """A message under way."""

    __slots__ = ("imm", "left", "length", "psn_last")

    def __init__(self, length: int, psn_last: int) -> None:
        self.length = length
        self.left = length
        """Bytes that have not come."""
        self.psn_last = psn_last
        self.imm: int | None = None


class UnderWay:
    """The messages of one context, by id."""

    __slots__ = ("_by_id", "_mtu", "_qpn", "_qpn_peer", "_whole", "peak")

    def __init__(self, mtu: int, qpn: int, qpn_peer: int) -> None:
        """`qpn`, `qpn_peer`: the QPs at the target and at the initiator, which every request names."""
        self._by_id: dict[int, Under] = {}
        self._whole: dict[int, tuple[int, int, int]] = {}
        """Last PSN -> (id, length, immediate) of messages that are whole before their turn."""
        self._mtu = mtu
        self._qpn = qpn
        self._qpn_peer = qpn_peer
        self.peak = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def find(self, write: Write, psn: int, size: int) -> Under | int:
        """The message that a packet belongs to, a new one for a new id; a return code if it cannot be true."""
        if write.pid << PID_SHIFT | write.resource != self._qpn or write.initiator != self._qpn_peer:
            return RC_BAD_INDEX
        offset = write.message_offset
        mtu = self._mtu
        if (
            offset >= write.length
            or offset % mtu
            or size != min(mtu, write.length - offset)
            or bool(write.flags & SES_EOM) != (write.length - offset <= mtu)
            or bool(write.flags & SES_SOM) != (offset == 0)
        ):
            return RC_UNSUPPORTED_SIZE
        psn_last = psn + (write.length - 1) // mtu - offset // mtu
        under = self._by_id.get(write.message_id)
        if under is None:
            return Under(write.length, psn_last)
        if under.length != write.length or under.psn_last != psn_last:
            return RC_UNSUPPORTED_SIZE
        return under

    def begin(self, message_id: int, under: Under) -> None:
        """Bytes of a message are placed: keep it."""
        self._by_id[message_id] = under
        self.peak = max(self.peak, len(self._by_id))

    def end(self, message_id: int, under: Under) -> None:
        """A message is whole."""
        del self._by_id[message_id]
        if under.imm is not None:
            self._whole[under.psn_last] = (message_id, under.length, under.imm)

    def in_turn(self, expected: int) -> list[tuple[int, int, int]]:
        """Id, length and immediate of whole messages that end before this PSN, in their order; they are gone then."""
        found = []
        while self._whole:
            psn = min(self._whole)
            if psn >= expected:
                break
            found.append(self._whole.pop(psn))
        return found
