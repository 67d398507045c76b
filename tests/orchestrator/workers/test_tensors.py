"""The data of the all-reduce: fresh in every step, and summed in exactly one order."""

import numpy as np
import pytest

from orchestrator.workers.ring import RingShape
from orchestrator.workers.tensors import BLOCK, Tensors, weight

SHAPE = RingShape(ranks=3, buckets=2, elements=3 * 2 * 5)


def sums(tensors: Tensors, step: int, bucket: int) -> np.ndarray:
    """The expected bucket, written down again: chunk c is added up from rank c on."""
    shape = tensors.shape
    gradients = np.empty((shape.ranks, shape.bucket), np.float32)
    for rank in range(shape.ranks):
        tensors.fill(step, rank, bucket, gradients[rank])
    result = np.empty(shape.bucket, np.float32)
    for chunk in range(shape.ranks):
        span = slice(chunk * shape.chunk, (chunk + 1) * shape.chunk)
        order = [(chunk + turn) % shape.ranks for turn in range(shape.ranks)]
        total = gradients[order[0]][span].copy()
        for rank in order[1:]:
            total = total + gradients[rank][span]
        result[span] = total
    return result


def test_the_expected_sum_is_the_rings() -> None:
    tensors = Tensors(SHAPE, "seed")
    for step, bucket in [(0, 0), (1, 1), (77, 0)]:
        result = sums(tensors, step, bucket)
        for start, stop in tensors.blocks():
            assert tensors.wrong(step, bucket, start, result[start:stop]) == 0


def test_one_flipped_bit_is_one_wrong_value() -> None:
    tensors = Tensors(SHAPE, "seed")
    result = sums(tensors, 3, 1)
    result.view(np.uint32)[7] ^= 1
    assert tensors.wrong(3, 1, 5, result[5:10]) == 1
    assert tensors.wrong(3, 1, 0, result[0:5]) == 0


def test_data_of_another_step_rank_or_bucket_are_wrong() -> None:
    tensors = Tensors(SHAPE, "seed")
    result = sums(tensors, 3, 1)
    assert tensors.wrong(4, 1, 0, result[:5]) == 5
    assert tensors.wrong(3, 0, 0, result[:5]) == 5
    assert tensors.wrong(3, 1, 5, result[:5]) == 5


def test_the_same_seed_gives_the_same_data_anywhere() -> None:
    one, other, third = Tensors(SHAPE, "a"), Tensors(SHAPE, "a"), Tensors(SHAPE, "b")
    assert sums(one, 0, 0).tobytes() == sums(other, 0, 0).tobytes() != sums(third, 0, 0).tobytes()


def test_weights_are_exact_and_differ_between_steps_and_ranks() -> None:
    weights = [float(weight(step, rank)) for step in range(50) for rank in range(8)]
    assert all(1 <= value < 2 and (value * 8192).is_integer() for value in weights)
    assert len(set(weights)) == len(weights)


@pytest.mark.parametrize("chunk", [1, 5, BLOCK, BLOCK + 1, 3 * BLOCK - 1])
def test_blocks_cover_a_bucket_once_and_cross_no_chunk(chunk: int) -> None:
    shape = RingShape(2, 1, 2 * chunk)
    pieces = Tensors(shape, "x").blocks()
    assert [start for start, _ in pieces] == [0, *[stop for _, stop in pieces][:-1]]
    assert pieces[-1][1] == shape.bucket
    assert all(start // chunk == (stop - 1) // chunk and stop - start <= BLOCK for start, stop in pieces)
