"""Makes the gradients of the all-reduce, and computes the sums that they must give, bit for bit.

Owns the data. Every rank has its own base tensor, and every step its own weight per rank, so no step repeats another,
and a stale or misplaced byte shows. All bases are shifted views of one seeded noise, which any rank can make for
itself. Each rank computes locally what the ring must deliver, with additions in exactly the order of
`orchestrator.workers.ring`.
"""

import numpy as np

from mrcfabric.rng import seed_of
from orchestrator.workers.ring import Floats, RingShape

SHIFT = 4099
"""Values between the bases of neighbouring ranks in the noise. It is prime, so that no chunk border repeats."""
BLOCK = 1 << 15
"""How many values to check at a time: few enough for the cache."""
WEIGHT_STEPS = 8191
WEIGHT_SCALE = 8192
"""Weights are 1 + k / 8192: exact in float32."""


def weight(step: int, rank: int) -> np.float32:
    """The factor of a rank's base in a step: from 1 to 2, exact in float32."""
    return np.float32(1 + (step * 7919 + rank * 104729) % WEIGHT_STEPS / WEIGHT_SCALE)


class Tensors:
    """The data of all ranks, made from a seed."""

    def __init__(self, shape: RingShape, seed: str) -> None:
        self.shape = shape
        noise = np.random.Generator(np.random.PCG64(seed_of(seed, "all-reduce")))
        self._noise: Floats = noise.standard_normal(shape.elements + shape.ranks * SHIFT, dtype=np.float32)
        self._sum = np.empty(BLOCK, np.float32)
        self._term = np.empty(BLOCK, np.float32)

    def _base(self, rank: int, start: int, stop: int) -> Floats:
        return self._noise[rank * SHIFT + start : rank * SHIFT + stop]

    def fill(self, step: int, rank: int, bucket: int, out: Floats) -> None:
        """Write one bucket of a rank's gradient into `out`."""
        start = bucket * self.shape.bucket
        np.multiply(self._base(rank, start, start + self.shape.bucket), weight(step, rank), out=out)

    def wrong(self, step: int, bucket: int, start: int, result: Floats) -> int:
        """How many of up to BLOCK values, from `start` on within a bucket, are not the expected sum, bit for bit.

        The block must lie within one chunk.
        """
        shape = self.shape
        first = start // shape.chunk
        assert (start + len(result) - 1) // shape.chunk == first
        begin = bucket * shape.bucket + start
        total, term = self._sum[: len(result)], self._term[: len(result)]
        for turn in range(shape.ranks):
            # The sum of chunk c starts with rank c; c + 1, c + 2, ... add to it round the ring.
            rank = (first + turn) % shape.ranks
            base = self._base(rank, begin, begin + len(result))
            if turn == 0:
                np.multiply(base, weight(step, rank), out=total)
            else:
                np.multiply(base, weight(step, rank), out=term)
                np.add(total, term, out=total)
        # Compare bits: a NaN must equal itself, and -0.0 must not equal 0.0.
        return int(np.count_nonzero(total.view(np.uint32) != result.view(np.uint32)))

    def blocks(self) -> list[tuple[int, int]]:
        """The pieces of a bucket for `wrong`: (start, stop). None crosses a chunk's border."""
        chunk = self.shape.chunk
        return [
            (at, min(at + BLOCK, edge + chunk))
            for edge in range(0, self.shape.bucket, chunk)
            for at in range(edge, edge + chunk, BLOCK)
        ]
