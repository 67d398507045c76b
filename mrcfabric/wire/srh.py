"""The segment routing header of an EV that has one: inserted between the outer and the inner header, and removed again.

Owns the single-segment form that MRC allows and what its segment is for. `mrcfabric.wire.ipv6.Srh` is the field table.
The controller decides which uSIDs stand in a segment; a switch continues with it. Only QPs whose profile has such EVs
use the templates of this module: packets without an SRH pay nothing for it.

The outer part of an EV is its container (16 bytes), followed by the SRH (24 bytes) where there is one: `outer_with`.

Sources: RFC 8754 2 and 4.1.1 (reduced: the first segment stands in the destination address alone), RFC 9800 4.1,
MRC 1.0 7.5 (a single segment prolongs the container or keeps a copy of the path).
"""

from struct import Struct
from typing import Final

from mrcfabric.units import Buffer
from mrcfabric.wire.ipv6 import SRH_LENGTH, SRH_ROUTING_TYPE, Srh
from mrcfabric.wire.layout import INNER_OFFSET, IPV6_SIZE, NEXT_HEADER_IPV6, NEXT_HEADER_ROUTING
from mrcfabric.wire.templates import ControlTemplate, DataTemplate

SRH_SIZE: Final = 24
OUTER_SIZE: Final = 16 + SRH_SIZE
NEXT_HEADER_OFFSET: Final = 6
_LENGTH: Final = slice(4, 6)
_FIXED: Final = Struct(">BBBB")


def outer_with(container: bytes, segment: bytes) -> bytes:
    """The outer part of an EV with an SRH: container, then the header; both arguments are 16 bytes."""
    assert len(container) == len(segment) == 16
    # RFC 8754 4.1.1: a segment that is still to come counts as left; a copy of the path does not.
    left = 0 if segment == container else 1
    return container + Srh(NEXT_HEADER_IPV6, segments_left=left, segment=segment).emit()


def insert(packet: bytearray, outer: bytes) -> bytearray:
    """A packet made for `outer[:16]` with the SRH of `outer[16:]` inserted, if there is one; changes `packet`."""
    if len(outer) != OUTER_SIZE:
        return packet
    packet[INNER_OFFSET:INNER_OFFSET] = outer[16:]
    packet[NEXT_HEADER_OFFSET] = NEXT_HEADER_ROUTING
    packet[_LENGTH] = (int.from_bytes(packet[_LENGTH], "big") + SRH_SIZE).to_bytes(2, "big")
    return packet


def follows(packet: Buffer) -> bool:
    """Whether a routing header follows the outer IPv6 header."""
    return len(packet) > NEXT_HEADER_OFFSET and packet[NEXT_HEADER_OFFSET] == NEXT_HEADER_ROUTING


def strip(packet: Buffer) -> bytearray | None:
    """The packet without its SRH; None when the SRH is malformed or has a segment left (RFC 8754 4.3)."""
    length = int.from_bytes(packet[_LENGTH], "big")
    if len(packet) < IPV6_SIZE + SRH_SIZE or length < SRH_SIZE:
        return None
    if _FIXED.unpack_from(packet, INNER_OFFSET) != (NEXT_HEADER_IPV6, SRH_LENGTH, SRH_ROUTING_TYPE, 0):
        return None
    out = bytearray(packet[:IPV6_SIZE])
    out += packet[IPV6_SIZE + SRH_SIZE :]
    out[NEXT_HEADER_OFFSET] = NEXT_HEADER_IPV6
    out[_LENGTH] = (length - SRH_SIZE).to_bytes(2, "big")
    return out


class SrhDataTemplate(DataTemplate):
    """`DataTemplate` for EVs that may have an SRH: with one their `outer_da` is 40 bytes long."""

    __slots__ = ()

    def build(
        self,
        opcode: int,
        psn: int,
        msn: int,
        rqmsn: int,
        va: int,
        r_key: int,
        dma_len: int,
        ev: int,
        outer_da: bytes,
        payload: Buffer,
        a: bool = False,
        rtx: bool = False,
        imm: int | None = None,
        timestamp: int = 0,
    ) -> bytearray:
        """As the base class does; `outer_da` with or without an SRH behind the container."""
        packet = super().build(
            opcode, psn, msn, rqmsn, va, r_key, dma_len, ev, outer_da[:16], payload, a, rtx, imm, timestamp
        )
        return insert(packet, outer_da)


class SrhControlTemplate(ControlTemplate):
    """`ControlTemplate` for such EVs: a probe takes the path of the EV that it tests."""

    __slots__ = ()

    def _packet(
        self, word: int, opcode: int, ev: int, outer_da: bytes, qp: int, psn: int, extension: bytes
    ) -> bytearray:
        return insert(super()._packet(word, opcode, ev, outer_da[:16], qp, psn, extension), outer_da)
