"""Data packets that a fault names by QP and PSN, each of which is lost once. MRC and RoCE, plain or behind uSIDs.

Owns how such a packet is told, and which ones have been lost. A retransmission of MRC says that it is one, and passes.
One of RC looks like the packet before, so a number that has been lost is remembered, and passes from then on.
"""

from struct import Struct
from typing import Final

from mrcfabric.units import Buffer
from mrcfabric.wire import srh
from mrcfabric.wire.layout import BTH_OFFSET, DATA_OPCODES, FLAG_RTX, IPV6_SIZE, NEXT_HEADER_UDP, PSN_MASK, UDP_SIZE
from mrcfabric.wire.roce_layout import RC_DATA_OPCODES

_BTH: Final = Struct(">B3xII")
_PLAIN_BTH: Final = IPV6_SIZE + UDP_SIZE
_NEXT_HEADER: Final = 6


class NamedPackets:
    """The packets that one direction of a link loses once, as `QPN << 24 | PSN` of their destination."""

    __slots__ = ("_lost", "_numbers")

    def __init__(self) -> None:
        self._numbers: frozenset[int] = frozenset()
        self._lost: set[int] = set()

    def change(self, numbers: frozenset[int]) -> None:
        """Name these from now on. What has been lost stays so as long as it goes on being named."""
        self._numbers = numbers
        self._lost &= numbers

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def lose(self, packet: Buffer) -> bool:
        """Whether this data packet is named and passes for the first time. Any bytes will do."""
        if len(packet) <= _NEXT_HEADER:
            return False
        if packet[_NEXT_HEADER] == NEXT_HEADER_UDP:
            start = _PLAIN_BTH
        else:
            start = BTH_OFFSET + (srh.SRH_SIZE if srh.follows(packet) else 0)
        if len(packet) < start + _BTH.size:
            return False
        opcode, qpn, psn = _BTH.unpack_from(packet, start)
        number = (qpn & PSN_MASK) << 24 | psn & PSN_MASK
        if number not in self._numbers:
            return False
        if opcode in DATA_OPCODES:
            return not psn >> 24 & FLAG_RTX
        if opcode not in RC_DATA_OPCODES or number in self._lost:
            return False
        self._lost.add(number)
        return True
