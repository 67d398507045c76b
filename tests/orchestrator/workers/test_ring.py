"""The ring all-reduce against every order in which its messages may travel."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.rng import Rng
from orchestrator.workers.ring import (
    RingError,
    RingRank,
    RingShape,
    Send,
    name_message,
    named_message,
)
from orchestrator.workers.tensors import Tensors

SHAPE = RingShape(ranks=4, buckets=3, elements=48)


class Ring:
    """Ranks joined by ordered edges; which edge moves next is drawn from a seed."""

    def __init__(self, shape: RingShape, steps: int, seed: int) -> None:
        self.shape, self.steps, self.rng = shape, steps, Rng("ring", seed)
        self.tensors = Tensors(shape, "test")
        self.memories = [np.full(shape.memory, np.nan, np.float32) for _ in range(shape.ranks)]
        self.ranks = [RingRank(shape, rank, memory) for rank, memory in enumerate(self.memories)]
        self.edges: list[deque[Send]] = [deque() for _ in range(shape.ranks)]
        self.checked = 0
        self.ahead_max = 0

    def begin(self, rank: int) -> None:
        for bucket in range(self.shape.buckets):
            step = self.ranks[rank].may_begin(bucket)
            if step is not None and step < self.steps:
                self.tensors.fill(step, rank, bucket, self.ranks[rank].tensor(step, bucket))
                self.edges[rank].extend(self.ranks[rank].begin(bucket))

    def deliver(self, rank: int) -> None:
        """The oldest message of a rank reaches its successor; the bytes are read only now."""
        send, to = self.edges[rank].popleft(), (rank + 1) % self.shape.ranks
        payload = self.memories[rank][send.source : send.source + send.length]
        self.memories[to][send.target : send.target + send.length] = payload
        imm = name_message(send.step, send.bucket, send.phase)
        self.ranks[rank].sent(imm)
        sends, finished = self.ranks[to].arrived(imm)
        self.edges[to].extend(sends)
        if finished is not None:
            result = self.ranks[to].tensor(finished, send.bucket)
            for start, stop in self.tensors.blocks():
                assert self.tensors.wrong(finished, send.bucket, start, result[start:stop]) == 0
            self.checked += 1

    def run(self) -> None:
        while True:
            choices = [("begin", rank) for rank in range(self.shape.ranks) if self.can_begin(rank)]
            choices += [("deliver", rank) for rank, edge in enumerate(self.edges) if edge]
            if not choices:
                return
            what, rank = choices[self.rng.below(len(choices))]
            (self.begin if what == "begin" else self.deliver)(rank)
            steps = [member.finished_steps for member in self.ranks]
            self.ahead_max = max(self.ahead_max, max(steps) - min(steps))

    def can_begin(self, rank: int) -> bool:
        steps = (self.ranks[rank].may_begin(bucket) for bucket in range(self.shape.buckets))
        return any(step is not None and step < self.steps for step in steps)


@given(ranks=st.integers(2, 5), buckets=st.integers(1, 3), chunk=st.integers(1, 3), seed=st.integers(0, 1 << 30))
def test_every_order_of_messages_gives_the_expected_bits(ranks: int, buckets: int, chunk: int, seed: int) -> None:
    ring = Ring(RingShape(ranks, buckets, ranks * buckets * chunk), steps=4, seed=seed)
    ring.run()
    assert ring.checked == ranks * buckets * 4
    assert [rank.finished_steps for rank in ring.ranks] == [4] * ranks
    assert ring.ahead_max <= 2


def test_every_chunk_is_sent_to_where_the_successor_expects_it() -> None:
    for rank in range(SHAPE.ranks):
        first_half = [SHAPE.sent_chunk(rank, phase) for phase in range(SHAPE.ranks - 1)]
        second_half = [SHAPE.sent_chunk(rank, phase) for phase in range(SHAPE.ranks - 1, SHAPE.phases)]
        assert len(set(first_half)) == len(set(second_half)) == SHAPE.ranks - 1
        assert first_half[0] == rank
        assert second_half[0] == (rank + 1) % SHAPE.ranks


def test_the_places_in_memory_do_not_overlap() -> None:
    places = [SHAPE.tensor_at(step, bucket, chunk) for step in range(2) for bucket in range(3) for chunk in range(4)]
    places += [SHAPE.slot_at(bucket, phase) for bucket in range(3) for phase in range(3)]
    assert sorted(places) == list(range(0, SHAPE.memory, SHAPE.chunk))


@pytest.mark.parametrize(
    ("ranks", "buckets", "elements"), [(1, 1, 8), (4, 0, 16), (4, 3, 50), (4, 3, 0), (600, 1, 600)]
)
def test_impossible_shapes_are_refused(ranks: int, buckets: int, elements: int) -> None:
    with pytest.raises(ValueError, match=r"not possible|cannot be cut"):
        RingShape(ranks, buckets, elements)


@given(st.integers(0, (1 << 12) - 1), st.integers(0, (1 << 10) - 1), st.integers(0, (1 << 10) - 1))
def test_the_immediate_names_step_bucket_and_phase(step: int, bucket: int, phase: int) -> None:
    imm = name_message(step, bucket, phase)
    assert 0 <= imm < 1 << 32
    assert named_message(imm) == (step, bucket, phase)
    assert name_message(step + (1 << 12), bucket, phase) == imm


def fresh() -> RingRank:
    return RingRank(SHAPE, 0, np.zeros(SHAPE.memory, np.float32))


@pytest.mark.parametrize(
    ("step", "bucket", "phase"),
    [(0, 0, 1), (1, 0, 0), (0, 3, 0), (4095, 0, 0)],
    ids=["phase missing", "step missing", "no such bucket", "old step"],
)
def test_a_message_out_of_turn_is_an_error(step: int, bucket: int, phase: int) -> None:
    with pytest.raises(RingError):
        fresh().arrived(name_message(step, bucket, phase))


def test_finished_chunks_cannot_come_before_the_step_is_begun() -> None:
    rank = fresh()
    for phase in range(SHAPE.ranks - 1):
        assert rank.arrived(name_message(0, 0, phase)) == ([], None)
    with pytest.raises(RingError):
        rank.arrived(name_message(0, 0, SHAPE.ranks - 1))


def test_a_buffer_is_not_refilled_while_it_is_being_sent() -> None:
    ring = Ring(RingShape(2, 1, 4), steps=3, seed=0)
    ring.run()
    late = ring.ranks[0]
    imm = name_message(3, 0, 0)
    assert late.may_begin(0) == 3
    late.begin(0)
    late.arrived(imm)
    late.arrived(name_message(3, 0, 1))
    assert late.may_begin(0) == 4
    ahead = late.begin(0)
    late.arrived(name_message(4, 0, 0))
    late.arrived(name_message(4, 0, 1))
    assert (len(ahead), late.may_begin(0)) == (1, None)
    late.sent(imm)
    late.sent(imm)
    assert late.may_begin(0) == 5
