"""The 16-bit sum of an InfiniBand link: VCRC, the last two bytes of every packet, and LPCRC of a link packet.

Owns the arithmetic. The polynomial is x^16 + x^12 + x^3 + x + 1, over bits in the order of the wire (low bit of a byte
first); it begins with ones, the result is inverted, and its low byte goes first. A switch that writes another VL into a
packet need not read the whole packet again: the sum is linear, so the change depends on the changed bits and on how
many bytes follow them.

`crc16` is made of operations on whole byte strings. With 16-bit words w[0..k) and Z[n] what n zero bytes make of a
state, the sum is the XOR of Z[2(k-i)] of w[i]; so words that are h apart become one, w[i+h] ^ Z[2h](w[i]), and Z acts
on the low and the high bytes of all words at once by four tables.

Source: IBTA 7.8.2 (VCRC), 7.9.4 (LPCRC); the sample packet of 7.8.3 is among the tests.
"""

from functools import cache
from typing import Final, TypeAlias

from mrcfabric.units import Buffer

VCRC_SIZE: Final = 2
POLYNOMIAL: Final = 0x100B
_ONES: Final = 0xFFFF
_LOOP_BYTES: Final = 64
"""Up to so many bytes the plain loop is faster."""
# The polynomial with the order of its bits reversed, as a register wants it that takes the low bit first.
_REVERSED: Final = int(f"{POLYNOMIAL:016b}"[::-1], 2)

_Map: TypeAlias = tuple[int, ...]
"""A linear map of 16 bits: the image of each bit, the lowest first."""


def _table() -> tuple[int, ...]:
    found = []
    for value in range(256):
        state = value
        for _ in range(8):
            state = state >> 1 ^ (_REVERSED if state & 1 else 0)
        found.append(state)
    return tuple(found)


_TABLE: Final = _table()


def crc16(data: Buffer) -> int:
    """The sum of `data`, as a number whose low byte goes first on the wire."""
    if len(data) <= _LOOP_BYTES:
        return _loop(_ONES, data) ^ _ONES
    # What stands in front of the first byte counts as zeros, and the ones to begin with are a part of the first two.
    begun = bytearray(data[:2])
    begun[0] ^= 0xFF
    begun[1] ^= 0xFF
    whole = b"".join((bytes(len(data) & 1), begun, data[2:]))
    low, high = whole[0::2], whole[1::2]
    words = len(low)
    while words > _LOOP_BYTES // 2:
        apart = 1 << words.bit_length() - 1
        if apart == words:
            apart >>= 1
        first = words - apart
        low_low, low_high, high_low, high_high = _byte_maps(apart)
        a, b = low[:first], high[:first]
        low = low[first:apart] + _xor(a.translate(low_low), b.translate(high_low), low[apart:])
        high = high[first:apart] + _xor(a.translate(low_high), b.translate(high_high), high[apart:])
        words = apart
    rest = bytearray(2 * words)
    rest[0::2], rest[1::2] = low, high
    return _loop(0, rest) ^ _ONES


def changed_by(difference: int, following: int) -> int:
    """What becomes of the sum when a byte changes by XOR with `difference` and `following` bytes stand behind it."""
    if not difference:
        return 0
    return _apply(_zeros(following), _TABLE[difference])


def _loop(state: int, data: Buffer) -> int:
    table = _TABLE
    for byte in data:
        state = state >> 8 ^ table[(state ^ byte) & 0xFF]
    return state


def _xor(*parts: bytes) -> bytes:
    value = 0
    for part in parts:
        value ^= int.from_bytes(part, "little")
    return value.to_bytes(len(parts[0]), "little")


def _apply(images: _Map, state: int) -> int:
    found = 0
    for bit, image in enumerate(images):
        if state >> bit & 1:
            found ^= image
    return found


@cache
def _zeros(count: int) -> _Map:
    """What `count` zero bytes make of a state; counts are lengths of packets, of which a fabric has few."""
    if not count:
        return tuple(1 << bit for bit in range(16))
    if count & 1:
        return tuple(state >> 8 ^ _TABLE[state & 0xFF] for state in _zeros(count - 1))
    half = _zeros(count // 2)
    return tuple(_apply(half, image) for image in half)


@cache
def _byte_maps(words: int) -> tuple[bytes, bytes, bytes, bytes]:
    """The map of `words` zero words on bytes: low to low, low to high, high to low, high to high."""
    images = _zeros(2 * words)
    low = [_apply(images, value) for value in range(256)]
    high = [_apply(images, value << 8) for value in range(256)]
    return (
        bytes(one & 0xFF for one in low),
        bytes(one >> 8 for one in low),
        bytes(one & 0xFF for one in high),
        bytes(one >> 8 for one in high),
    )
