"""The invariant CRC: the last four bytes of every packet.

Owns the sum. `mrcfabric.wire.fastpath` and the NIC core decide which packets must carry a good one (all that were not
trimmed).

Source: IBTA annex A17 (RoCEv2) over IPv6: the CRC-32 of IEEE 802.3 over eight bytes 0xFF, then the packet from the
*inner* IPv6 header on (the outer destination changes at every hop), with the bytes that may change in flight set to
ones: traffic class, flow label, hop limit, UDP checksum and the BTH's fifth byte. Sent with the low byte first.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from mrcfabric.units import Buffer
from mrcfabric.wire.crc import crc32

ICRC_SIZE: Final = 4

# RoCEv2 has no InfiniBand link header; the sum counts it as eight bytes of ones.
LRH_STATE: Final = crc32(b"\xff" * 8)

# Inner IPv6 (40), UDP (8) and BTH (12), in a packet that begins with the outer IPv6 header.
MASKED_START: Final = 40
MASKED_END: Final = 100
MASKED_SIZE: Final = MASKED_END - MASKED_START

_MASK_BYTES: Final = bytearray(MASKED_SIZE)
# Traffic class and flow label; the version keeps its value.
_MASK_BYTES[0:4] = b"\x0f\xff\xff\xff"
# Hop limit.
_MASK_BYTES[7] = 0xFF
# UDP checksum.
_MASK_BYTES[46:48] = b"\xff\xff"
# BTH, fifth byte (reserved or variant).
_MASK_BYTES[52] = 0xFF
MASK: Final = int.from_bytes(_MASK_BYTES, "big")


# Bound once: a look-up for each packet costs as much as the call. Sums are objects until they are compared: they go
# from one call into the next, and compiled code would convert them.
_crc32: Final[Callable[..., Any]] = crc32


def icrc(packet: Buffer) -> int:
    """The ICRC of a whole packet of at least 104 bytes; the last four are its place and are not read."""
    head = (int.from_bytes(packet[MASKED_START:MASKED_END], "big") | MASK).to_bytes(MASKED_SIZE, "big")
    found: int = _crc32(memoryview(packet)[MASKED_END:-ICRC_SIZE], _crc32(head, LRH_STATE))
    return found


def icrc_from(packet: Buffer, start: int) -> int:
    """The ICRC of a packet whose IPv6 header between the NICs stands at `start`: 0, or 40 behind an outer one.

    At least 64 bytes follow; the last four are the sum's place and are not read.
    """
    end = start + MASKED_SIZE
    head = (int.from_bytes(packet[start:end], "big") | MASK).to_bytes(MASKED_SIZE, "big")
    found: int = _crc32(memoryview(packet)[end:-ICRC_SIZE], _crc32(head, LRH_STATE))
    return found


# A CRC-32 over bytes that end in their own sum is always the same number.
RESIDUE: Final = 0x2144DF1C


# The inner IPv6 header's version, and from its payload length on what stands between the bytes that count as ones.
_BETWEEN: Final = Struct("40xB3x3sx38s2x4sx7s")
_between: Final = _BETWEEN.unpack_from
_WORD: Final = b"\x6f\xff\xff\xff"
_ONE: Final = b"\xff"
_TWO: Final = b"\xff\xff"
_BODY: Final = slice(MASKED_END, None)
_START: Final[Any] = LRH_STATE
assert _BETWEEN.size == MASKED_END


def icrc_ok(packet: Buffer) -> bool:
    """Whether the last four bytes of a packet are its ICRC; the packet has at least 104 bytes."""
    return icrc_in_view_ok(memoryview(packet))


def icrc_in_view_ok(packet: memoryview) -> bool:
    """`icrc_ok` for whoever has a view of the packet already: to make one takes as long as the sum of 1 KiB."""
    version: int
    version, lengths, addresses, opcode, rest = _between(packet)
    if version >> 4 != 6:
        return icrc_from_ok(packet, MASKED_START)
    head = b"".join((_WORD, lengths, _ONE, addresses, _TWO, opcode, _ONE, rest))
    found: int = _crc32(packet[_BODY], _crc32(head, _START))
    return found == RESIDUE


def icrc_from_ok(packet: Buffer, start: int) -> bool:
    """Whether the last four bytes of a packet are its ICRC; `start` as in `icrc_from`."""
    end = start + MASKED_SIZE
    head = (int.from_bytes(packet[start:end], "big") | MASK).to_bytes(MASKED_SIZE, "big")
    found: int = _crc32(memoryview(packet)[end:], _crc32(head, LRH_STATE))
    return found == RESIDUE


def seal(packet: bytearray | memoryview) -> None:
    """Write the ICRC into the last four bytes of a packet."""
    packet[-ICRC_SIZE:] = icrc(packet).to_bytes(ICRC_SIZE, "little")
