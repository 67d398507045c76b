"""A PFC frame as header tables, for people and tools; `mrcfabric.wire.pfc` encodes and parses frames.

Sources: IEEE 802.1Q 36 (PFC), IEEE 802.3 31 and annex 31D, 3.2.9 (check sequence).
"""

from dataclasses import dataclass
from typing import ClassVar

from mrcfabric.errors import WireError
from mrcfabric.units import Buffer
from mrcfabric.wire.header import Field, Header, Kind, reserved
from mrcfabric.wire.packet import Packet
from mrcfabric.wire.pfc import (
    ETHERTYPE_MAC_CONTROL,
    FCS_BYTES,
    PFC_DESTINATION,
    PFC_FRAME_BYTES,
    fault,
    with_fcs,
)


@dataclass(slots=True)
class PfcHeader(Header):
    """Everything in front of the check sequence, 60 bytes, padding included."""

    NAME: ClassVar[str] = "PFC"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("destination", 48, Kind.ADDRESS),
        Field("source", 48, Kind.ADDRESS),
        Field("ethertype", 16),
        Field("opcode", 16),
        reserved(8),
        Field("classes", 8),
        *(Field(f"quanta_{one}", 16) for one in range(8)),
        reserved(26 * 8),
    )

    destination: bytes
    source: bytes
    ethertype: int
    opcode: int
    classes: int
    """Bit c: the frame is about class c."""
    quanta_0: int
    quanta_1: int
    quanta_2: int
    quanta_3: int
    quanta_4: int
    quanta_5: int
    quanta_6: int
    quanta_7: int


@dataclass(slots=True)
class Fcs(Header):
    """The check sequence of an Ethernet frame."""

    NAME: ClassVar[str] = "FCS"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("fcs", 32),)

    fcs: int


def is_mac_control(buf: Buffer) -> bool:
    """Whether the bytes begin as a MAC control frame; no IPv6 packet does."""
    return bytes(buf[:6]) == PFC_DESTINATION and bytes(buf[12:14]) == ETHERTYPE_MAC_CONTROL.to_bytes(2, "big")


def dissect(buf: Buffer, left_out: int = 0) -> tuple[Packet, str | None]:
    """The headers of a link control frame as far as they are there, and why it is no good PFC frame. Never raises.

    Without its check sequence, as most captures keep a frame, it is good too.
    """
    packet = Packet(left_out=left_out)
    try:
        packet.headers.append(PfcHeader.parse(buf))
        packet.headers.append(Fcs.parse(buf[PfcHeader.SIZE :]))
    except WireError:
        pass
    if left_out:
        return packet, None
    whole = with_fcs(buf) if len(buf) == PFC_FRAME_BYTES - FCS_BYTES else buf
    return packet, fault(whole)
