"""Our own integer pseudo-random generator, seeded from names, the same on every machine and Python version.

Splitmix64 (Steele, Lea, Flood 2014): one 64-bit addition and a mix per draw. Not for secrets.
"""

from collections.abc import MutableSequence
from typing import Final, TypeVar

T = TypeVar("T")

_MASK: Final = (1 << 64) - 1
_GAMMA: Final = 0x9E3779B97F4A7C15
# FNV-1a, 64 bits: a hash of names that is not salted per process.
_FNV_BASIS: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3

PPM: Final = 1_000_000


def seed_of(*names: str | int) -> int:
    """A 64-bit seed from names, in order; distinct name lists give unrelated seeds."""
    value = _FNV_BASIS
    for byte in "\x00".join(str(name) for name in names).encode():
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return value


class Rng:
    """A stream of random integers that depends only on the names it was made from."""

    __slots__ = ("_state",)

    def __init__(self, *names: str | int) -> None:
        self._state = seed_of(*names)

    def bits64(self) -> int:
        """The next 64 random bits."""
        self._state = state = (self._state + _GAMMA) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return state ^ (state >> 31)

    def below(self, bound: int) -> int:
        """A random integer in [0, bound), by multiplication; the bias is below bound / 2**64."""
        return (self.bits64() * bound) >> 64

    def chance(self, ppm: int) -> bool:
        """True with probability ppm / 1,000,000. Draws nothing when the answer is certain."""
        if ppm <= 0:
            return False
        if ppm >= PPM:
            return True
        return self.below(PPM) < ppm

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Permute in place (Fisher-Yates)."""
        for last in range(len(items) - 1, 0, -1):
            pick = self.below(last + 1)
            items[last], items[pick] = items[pick], items[last]
