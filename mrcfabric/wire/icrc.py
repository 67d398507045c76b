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


# A CRC is linear: a byte that counts as ones and is something else changes the sum as another start would. So the sum
# of the bytes as they are, from the right start, is the ICRC, and none of them need be replaced.
_POLYNOMIAL: Final = 0xEDB88320
_TOP: Final = 1 << 31


def start_change(place: int, change: int) -> int:
    """What changes in the start of a CRC-32 if the byte at `place` is changed in these bits and the sum is to stay."""
    # The state that becomes `change` behind so many bytes of zero.
    for _ in range(8 * place):
        change = (change ^ _POLYNOMIAL) << 1 | 1 if change & _TOP else change << 1
    return change


def _starts(place: int, counted: int) -> list[int]:
    """By value of the byte at `place`, which counts as `counted`: the change of the start."""
    found = [0]
    for bit in range(8):
        change = start_change(place, 1 << bit)
        found += [start ^ change for start in found]
    return [found[value ^ counted] for value in range(256)]


# The first word, version 6, the hop limit, the UDP checksum, the BTH's fifth byte.
_VARYING: Final = Struct(">I3xB38xH4xB")
_varying: Final = _VARYING.unpack_from
_WORD_0: Final = _starts(0, 0x6F)
_WORD_1: Final = _starts(1, 0xFF)
_WORD_2: Final = _starts(2, 0xFF)
_WORD_3: Final = _starts(3, 0xFF)
_HOP_LIMIT: Final = _starts(7, 0xFF)
ZEROS_FROM_UDP: Final = start_change(6, 0xFF) ^ start_change(7, 0xFF) ^ start_change(12, 0xFF)
"""What changes in the start of a sum from the UDP header on if the UDP checksum and the BTH's fifth byte are zero."""
_START: Final = LRH_STATE ^ start_change(40, ZEROS_FROM_UDP)
"""The start where those three bytes are zero, as they are in nearly every packet."""
_VERSION: Final = 6


def sum_start(word: int, hop_limit: int, checksum: int, fifth: int) -> int:
    """Where the ICRC of a packet with these fields starts, summed over the bytes as they are; -1: it cannot be so.

    They are the first word and the hop limit of the IPv6 header between the NICs, the UDP checksum and the BTH's fifth
    byte. Whoever has read them need not have them read again.
    """
    if checksum | fifth or word >> 28 != _VERSION:
        return -1
    return (
        _START ^ _WORD_0[word >> 24] ^ _WORD_1[word >> 16 & 0xFF] ^ _WORD_2[word >> 8 & 0xFF] ^ _WORD_3[word & 0xFF]
        ^ _HOP_LIMIT[hop_limit]
    )  # fmt: skip


def icrc_ok(packet: Buffer) -> bool:
    """Whether the last four bytes of a packet are its ICRC; the packet has at least 104 bytes."""
    return icrc_from_ok(packet, MASKED_START)


def icrc_from_ok(packet: Buffer, start: int) -> bool:
    """Whether the last four bytes of a packet are its ICRC; `start` as in `icrc_from`."""
    word: int
    hop_limit: int
    checksum: int
    fifth: int
    word, hop_limit, checksum, fifth = _varying(packet, start)
    return icrc_in_view_ok(memoryview(packet), start, sum_start(word, hop_limit, checksum, fifth))


def icrc_in_view_ok(packet: memoryview, start: int, state: int) -> bool:
    """The same for whoever has a view of the packet, which takes as long to make as the sum of 1 KiB.

    `state` is its `sum_start`.
    """
    if state < 0:
        return _masked_ok(packet, start)
    found: int = _crc32(packet[start:] if start else packet, state)
    return found == RESIDUE


def _masked_ok(packet: memoryview, start: int) -> bool:
    """The same, whatever stands in the bytes that count as ones."""
    end = start + MASKED_SIZE
    head = (int.from_bytes(packet[start:end], "big") | MASK).to_bytes(MASKED_SIZE, "big")
    found: int = _crc32(packet[end:], _crc32(head, LRH_STATE))
    return found == RESIDUE


def seal(packet: bytearray | memoryview) -> None:
    """Write the ICRC into the last four bytes of a packet."""
    packet[-ICRC_SIZE:] = icrc(packet).to_bytes(ICRC_SIZE, "little")
