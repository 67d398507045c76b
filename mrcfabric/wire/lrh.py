"""InfiniBand's local route header, and what a link needs to know of a packet that begins with it.

Owns the eight bytes of the LRH as plain integers, the packet's two sums as they concern whole packets, blocks of
credit, and what a switch writes (the VL). `mrcfabric.wire.lrh_rc` has the RC packets behind it, `vcrc` the arithmetic
of the link's sum, `lrh_headers` tables for people. Nothing here raises for bytes of a peer.

     0    4    8    12  14  16          32    37       48          64
    +----+----+----+---+---+-----------+-----+--------+-----------+------ ... --+------+------+
    | VL |LVer| SL |0 0|LNH|   DLID    |0..0 | PktLen |   SLID    | BTH, payload | ICRC | VCRC |
    +----+----+----+---+---+-----------+-----+--------+-----------+------ ... --+------+------+

PktLen counts words of four bytes from the LRH through the ICRC. The ICRC counts the VL and the BTH's fifth byte as
ones; the VCRC counts everything in front of it. Both go low byte first.

Sources: IBTA 7.7 (LRH), 7.8 (sums), 7.9.4 (blocks of 64 bytes), 4.1.1 (LIDs), 7.6.4 (VL15).
"""

from struct import Struct
from typing import Final
from zlib import crc32

from mrcfabric.units import Buffer
from mrcfabric.wire.layout import BTH_SIZE, ICRC_SIZE
from mrcfabric.wire.vcrc import VCRC_SIZE, changed_by, crc16

LRH_SIZE: Final = 8
LNH_LOCAL: Final = 2
"""A BTH follows. Other values: 3 a GRH, 0 and 1 raw packets."""
LVER: Final = 0
VLS: Final = 16
MANAGEMENT_VL: Final = 15
"""Has no credits and goes before all others."""
SLS: Final = 16
LID_MAX: Final = 0xBFFF
"""The last unicast LID; the first one is 1."""
PERMISSIVE_LID: Final = 0xFFFF
"""Of a packet whose route does not go by LIDs."""
PACKET_WORDS_MAX: Final = 0x7FF
BLOCK_BYTES: Final = 64
LEAST: Final = LRH_SIZE + BTH_SIZE + ICRC_SIZE + VCRC_SIZE
"""Bytes of the shortest packet with a BTH."""

LRH: Final = Struct(">BBHHH")
"""VL and LVer; SL and LNH; DLID; PktLen with five reserved bits in front; SLID."""
_BTH5: Final = LRH_SIZE + 4

# Why a packet goes no further.
BAD_LVER: Final = "lver"
BAD_LNH: Final = "lnh"
BAD_VCRC: Final = "vcrc"
TRUNCATED: Final = "truncated"
BAD_LENGTH: Final = "length"


def pack(vl: int, sl: int, dlid: int, words: int, slid: int) -> bytes:
    """An LRH in front of a BTH; `words` is PktLen."""
    return LRH.pack(vl << 4 | LVER, sl << 4 | LNH_LOCAL, dlid, words, slid)


def vl_of(packet: Buffer) -> int:
    """The VL that a packet travels on; it has at least one byte."""
    return packet[0] >> 4


def sl_of(packet: Buffer) -> int:
    """The service level of a packet of at least two bytes."""
    return packet[1] >> 4


def dlid_of(packet: Buffer) -> int:
    """Where a packet of at least four bytes goes."""
    return packet[2] << 8 | packet[3]


def slid_of(packet: Buffer) -> int:
    """Where a packet of at least eight bytes comes from."""
    return packet[6] << 8 | packet[7]


def blocks_of(size: int) -> int:
    """Blocks of credit that a packet of `size` bytes takes, LRH through VCRC."""
    return (size + BLOCK_BYTES - 1) // BLOCK_BYTES


def link_fault(packet: Buffer) -> str | None:
    """Why a link layer cannot take a packet: its first three fields or its length; None: it can."""
    size = len(packet)
    if size < LEAST:
        return TRUNCATED
    if packet[0] & 0x0F != LVER:
        return BAD_LVER
    if packet[1] & 0x03 != LNH_LOCAL:
        return BAD_LNH
    stated = ((packet[4] & 0x07) << 8 | packet[5]) * 4 + VCRC_SIZE
    if stated != size:
        return TRUNCATED if size < stated else BAD_LENGTH
    return None


def set_vl(packet: bytearray, vl: int) -> None:
    """Put a packet that `link_fault` finds nothing wrong with on another VL, and mend its VCRC by the difference.

    A VCRC that was wrong stays wrong.
    """
    first = packet[0]
    difference = (first >> 4 ^ vl) << 4
    if not difference:
        return
    packet[0] = first ^ difference
    change = changed_by(difference, len(packet) - 1 - VCRC_SIZE)
    packet[-2] ^= change & 0xFF
    packet[-1] ^= change >> 8


def vcrc_ok(packet: Buffer) -> bool:
    """Whether the last two bytes of a packet of at least two are its VCRC."""
    view = memoryview(packet)
    return crc16(view[:-VCRC_SIZE]) == int.from_bytes(view[-VCRC_SIZE:], "little")


def lrh_icrc(packet: Buffer) -> int:
    """The ICRC of a packet of at least `LEAST` bytes; its last six bytes are not read."""
    head = bytearray(packet[: LRH_SIZE + BTH_SIZE])
    head[0] |= 0xF0
    head[_BTH5] = 0xFF
    return crc32(memoryview(packet)[LRH_SIZE + BTH_SIZE : -ICRC_SIZE - VCRC_SIZE], crc32(head))


def lrh_icrc_ok(packet: Buffer) -> bool:
    """Whether the four bytes in front of the VCRC are the ICRC of a packet of at least `LEAST` bytes."""
    found = int.from_bytes(packet[-ICRC_SIZE - VCRC_SIZE : -VCRC_SIZE], "little")
    return lrh_icrc(packet) == found


def lrh_sums_ok(packet: Buffer) -> bool:
    """Whether both sums of a packet of at least `LEAST` bytes are good."""
    return lrh_icrc_ok(packet) and vcrc_ok(packet)


def with_vcrc(packet: bytearray) -> bytearray:
    """The same packet with its VCRC behind it."""
    packet += crc16(packet).to_bytes(VCRC_SIZE, "little")
    return packet
