"""Programs that reduce: all-reduce by two algorithms, reduce-scatter; and the buckets that `training` reduces.

Owns what a step of them is; `ring` and `halving` have the algorithms.
"""

from functools import partial
from typing import Final, Protocol

from mrcfabric.units import MIB
from nicd.programs.halving import Halving
from nicd.programs.kind import MESSAGE_BYTES_MAX, STEPS_MAX, Figure, Figures, Kind, Part, Run
from nicd.programs.noise import LANE_BYTES
from nicd.programs.program import Program
from nicd.programs.rank import Rank
from nicd.programs.ring import Ring
from nicd.programs.vector import Addends, Vector

ALGORITHMS: Final[dict[str, type[Ring] | type[Halving]]] = {"ring": Ring, "halving_doubling": Halving}
BUCKETS_MAX: Final = 256

STEPS: Final = Figure(10, "How often, one after the other.", 1, STEPS_MAX)
BYTES: Final = Figure(MIB, "The vector of every rank: 32-bit numbers.", LANE_BYTES, MESSAGE_BYTES_MAX, LANE_BYTES)


class Reduction(Protocol):
    """One vector that all ranks reduce by one algorithm."""

    async def sent(self) -> None: ...

    async def all_reduce(self) -> None: ...


class Bucket:
    """A vector that is reduced repeatedly; every sum is verified."""

    def __init__(self, rank: Rank, addends: Addends, algorithm: str, number: int, size: int) -> None:
        reduction = ALGORITHMS[algorithm]
        base = number * (size + reduction.slots_bytes(size, rank.count))
        self._vector = Vector(rank, base, size)
        self._addends = addends
        self.number = number
        self._reduction: Reduction = reduction(self._vector, base + size, number * reduction.channels(rank.count))

    async def reduce(self, step: int) -> None:
        """One all-reduce."""
        await self._reduction.sent()
        self._addends.fill(self._vector, step, self.number)
        await self._reduction.all_reduce()
        self._addends.verify(self._vector, 0, self._vector.size, step, self.number)


def buckets_part(program: Program, figures: Figures, number: int, algorithm: str, buckets: int, run: Run) -> Part:
    """The part of a rank in a program that all-reduces `buckets` vectors."""
    ranks, size = len(program.ranks), figures["bucket_bytes"]
    reduction = ALGORITHMS[algorithm]
    return Part(reduction.peers(ranks, number), buckets * (size + reduction.slots_bytes(size, ranks)), b"", run)


def _all_reduce(algorithm: str, program: Program, figures: Figures, number: int) -> Part:
    async def run(rank: Rank) -> None:
        """Run all-reduces of one vector, one after the other."""
        bucket = Bucket(rank, Addends(rank, figures["bucket_bytes"]), algorithm, 0, figures["bucket_bytes"])
        for step in range(figures["steps"]):
            begin_ns = rank.now
            await bucket.reduce(step)
            rank.step(begin_ns, begin_ns)

    return buckets_part(program, figures, number, algorithm, 1, run)


def _reduce_scatter(program: Program, figures: Figures, number: int) -> Part:
    size, ranks = figures["bucket_bytes"], len(program.ranks)

    async def run(rank: Rank) -> None:
        """Run reduce-scatters of one vector, one after the other, with two sets of slots in turn."""
        vector, addends = Vector(rank, 0, size), Addends(rank, size)
        # The rank before us may be one step ahead of us, not two: to finish the next step it needs our part of that
        # step.
        rings = [Ring(vector, size + turn * Ring.slots_bytes(size, ranks), turn * Ring.channels(ranks))
                 for turn in (0, 1)]  # fmt: skip
        for step in range(figures["steps"]):
            begin_ns = rank.now
            ring = rings[step % 2]
            await rings[1 - step % 2].sent()
            addends.fill(vector, step)
            await ring.reduce_scatter(1)
            addends.verify(vector, *ring.chunk(rank.number), step)
            rank.step(begin_ns, begin_ns)

    return Part(Ring.peers(ranks, number), size + 2 * Ring.slots_bytes(size, ranks), b"", run)


_REDUCED: Final = {"steps": STEPS, "bucket_bytes": BYTES}

RING_ALL_REDUCE: Final = Kind(
    "Sums of vectors of all ranks, at all ranks: round a ring in the order of the ranks.",
    _REDUCED,
    partial(_all_reduce, "ring"),
)
HALVING_ALL_REDUCE: Final = Kind(
    "Sums of vectors of all ranks, at all ranks: by recursive halving and doubling.",
    _REDUCED,
    partial(_all_reduce, "halving_doubling"),
)
REDUCE_SCATTER: Final = Kind(
    "Sums of vectors of all ranks, of which every rank gets a part: round a ring.", _REDUCED, _reduce_scatter
)
