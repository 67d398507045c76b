"""The numbers that ranks reduce: where they lie, how they are cut, and how two parts are added.

Owns the layout of a vector in a rank's memory and the arithmetic. The modules of the collectives say which part goes
where and in which order.

A vector is reduced in place. Behind it are slots, parts of memory into which peers write partial sums before they are
added. Peers write final sums straight into the vector.
"""

from typing import Final

from mrcfabric.units import KIB
from nicd.programs.noise import LANE_BYTES, SLACK_BYTES, STRIDE_BYTES, added, contributions, lane_of, sums
from nicd.programs.rank import Rank

_PIECE_BYTES: Final = 16 * KIB
"""Numbers of this length are added at a time: they stay in the processor's cache, and are not mapped page by page."""


def cut(size: int, parts: int) -> list[int]:
    """Where each part of a vector of `size` bytes begins, and where the last one ends: whole lanes, nearly equal."""
    lanes = size // LANE_BYTES
    return [lanes * part // parts * LANE_BYTES for part in range(parts + 1)]


def longest(size: int, parts: int) -> int:
    """Bytes of the longest part."""
    return -(-(size // LANE_BYTES) // parts) * LANE_BYTES


class Vector:
    """One vector of a rank: bytes `base` to `base + size` of its memory."""

    __slots__ = ("base", "rank", "size")

    def __init__(self, rank: Rank, base: int, size: int) -> None:
        self.rank = rank
        self.base = base
        self.size = size

    def add(self, low: int, high: int, slot: int) -> None:
        """Add the memory from `slot` on to bytes `low` to `high` of the vector."""
        memory = self.rank.memory
        further = slot - self.base - low
        for start in range(self.base + low, self.base + high, _PIECE_BYTES):
            end = min(start + _PIECE_BYTES, self.base + high)
            memory[start:end] = added(memory[start:end], memory[start + further : end + further])


class Addends:
    """Every rank's contribution to reductions of up to `size` bytes, and their sums."""

    __slots__ = ("_given", "_sums")

    def __init__(self, rank: Rank, size: int) -> None:
        names = rank.program.seed, rank.program.name
        self._given = contributions(*names, size + SLACK_BYTES, rank.count)
        self._sums = sums(*names, size + SLACK_BYTES, rank.count)

    def fill(self, vector: Vector, *place: int) -> None:
        """Write this rank's contribution into a vector; `place` (step, bucket) selects which contribution."""
        start = lane_of(*place) + vector.rank.number * STRIDE_BYTES
        vector.rank.memory[vector.base : vector.base + vector.size] = self._given[start : start + vector.size]

    def verify(self, vector: Vector, low: int, high: int, *place: int) -> None:
        """Compare bytes `low` to `high` with the sum of all ranks' contributions."""
        start = lane_of(*place)
        vector.rank.verify(vector.base + low, self._sums[start + low : start + high])
