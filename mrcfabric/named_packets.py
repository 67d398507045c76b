"""Data packets that a fault names by QP and PSN, each of which is lost once: MRC, RoCE, UET and InfiniBand, plain or
behind uSIDs.

Owns how such a packet is told, and which ones have been lost. A retransmission of MRC or UET says that it is one, and
passes; of a PSN of UET the lower 24 bits count.
One of RC looks like the packet before, so a number that has been lost is remembered, and passes from then on.
"""

from struct import Struct
from typing import Final

from mrcfabric.units import Buffer
from mrcfabric.wire import srh
from mrcfabric.wire.layout import BTH_OFFSET, DATA_OPCODES, FLAG_RTX, IPV6_SIZE, NEXT_HEADER_UDP, PSN_MASK, UDP_SIZE
from mrcfabric.wire.lrh import LRH_SIZE, link_fault
from mrcfabric.wire.roce_layout import RC_DATA_OPCODES
from mrcfabric.wire.uet import read_target
from mrcfabric.wire.uet_layout import (
    FLAG_RETX,
    NEXT_SMALL,
    PDS_OFFSET,
    PDS_SIZES,
    PID_SHIFT,
    REQUESTS,
    SES_SIZES,
    TYPE_SHIFT,
    UDP_PORT_UET,
)

_BTH: Final = Struct(">B3xII")
_PLAIN_BTH: Final = IPV6_SIZE + UDP_SIZE
_NEXT_HEADER: Final = 6
_PORT: Final = IPV6_SIZE + 2
_UET_PORT: Final = UDP_PORT_UET.to_bytes(2, "big")
_PDS: Final = Struct(">H2xI")


class NamedPackets:
    """The packets that one direction of a link loses once, as `QPN << 24 | PSN` of their destination."""

    __slots__ = ("_lost", "_numbers", "losses")

    def __init__(self) -> None:
        self.losses: dict[int, int] = {}
        """How often each number has been lost."""
        self._numbers: frozenset[int] = frozenset()
        self._lost: set[int] = set()

    def change(self, numbers: frozenset[int]) -> None:
        """Name these from now on. What has been lost stays so as long as it goes on being named."""
        self._numbers = numbers
        self._lost &= numbers

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def lose(self, packet: Buffer) -> bool:
        """Whether this data packet is named and passes for the first time; it is counted then. Any bytes will do."""
        number = self._named(packet)
        if number is None:
            return False
        self.losses[number] = self.losses.get(number, 0) + 1
        return True

    def _named(self, packet: Buffer) -> int | None:
        """The number of a data packet that is lost now."""
        if len(packet) <= _NEXT_HEADER:
            return None
        if link_fault(packet) is None and packet[LRH_SIZE] in RC_DATA_OPCODES:
            # In an IPv6 packet of ours the prefix of addresses stands there, which is no opcode.
            start = LRH_SIZE
        elif packet[_NEXT_HEADER] == NEXT_HEADER_UDP:
            if packet[_PORT : _PORT + 2] == _UET_PORT:
                return self._named_uet(packet)
            start = _PLAIN_BTH
        else:
            start = BTH_OFFSET + (srh.SRH_SIZE if srh.follows(packet) else 0)
        if len(packet) < start + _BTH.size:
            return None
        opcode, qpn, psn = _BTH.unpack_from(packet, start)
        number: int = (qpn & PSN_MASK) << 24 | psn & PSN_MASK
        if number not in self._numbers:
            return None
        if opcode in DATA_OPCODES:
            return None if psn >> 24 & FLAG_RTX else number
        if opcode not in RC_DATA_OPCODES or number in self._lost:
            return None
        self._lost.add(number)
        return number

    def _named_uet(self, packet: Buffer) -> int | None:
        """The same of a packet of UET."""
        if len(packet) < PDS_OFFSET + _PDS.size:
            return None
        prologue, psn = _PDS.unpack_from(packet, PDS_OFFSET)
        kind = prologue >> TYPE_SHIFT
        if kind not in REQUESTS or prologue & FLAG_RETX:
            return None
        ses = PDS_OFFSET + PDS_SIZES[kind]
        if len(packet) < ses + SES_SIZES[NEXT_SMALL]:
            return None
        pid, resource = read_target(packet, ses)
        number: int = (pid << PID_SHIFT | resource) << 24 | psn & PSN_MASK
        return number if number in self._numbers else None
