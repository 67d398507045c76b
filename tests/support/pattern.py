"""The bytes that tests send: other ones for each sender, and nowhere the same one packet further on."""

import functools

_LENGTH = 65_521
"""A prime: no packet is as long as a part of it."""


def pattern(seed: int, size: int) -> bytearray:
    """`size` bytes that differ between the seeds 0 to 255 and nowhere repeat in step with a packet."""
    block = _block(seed % 256)
    return bytearray((block * (size // _LENGTH + 1))[:size])


@functools.cache
def _block(seed: int) -> bytes:
    return bytes((value * 167 + seed * 59 + (value >> 8) * 31) & 0xFF for value in range(_LENGTH))
