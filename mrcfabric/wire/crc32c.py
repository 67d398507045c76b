"""CRC-32C (Castagnoli), the sum at the end of UET packets, in plain Python.

Owns the table. About a hundred times slower than `zlib.crc32`, which no standard library offers for this polynomial:
`uet_crc` says which of the two a fabric uses. RFC 3720 B.4 (test vectors).
"""

from typing import Final

from mrcfabric.units import Buffer

_POLYNOMIAL: Final = 0x82F63B78
"""Bits reversed."""


def _entry(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE: Final = [_entry(value) for value in range(256)]


def crc32c(data: Buffer, start: int = 0) -> int:
    """The sum of `data`; `start`: that of what stands before it."""
    value = start ^ 0xFFFFFFFF
    table = _TABLE
    for byte in bytes(data):
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF
