"""A ring all-reduce of float32 tensors as a state machine over shared memory, without any I/O.

Owns which rank sends which chunk when, the additions, and the argument why no buffer is overwritten before its use.
`orchestrator.workers.allreduce` posts the sends and polls completions. `orchestrator.workers.tensors` has the expected
sums.

A tensor is cut into buckets, and a bucket into one chunk per rank. Every bucket goes through 2(n - 1) phases on its
own, so that many chunks are under way at once. In phase p a rank sends one chunk to its successor and gets another from
its predecessor. After the addition, it sends the chunk that came in phase p in phase p + 1:

    phases 0 .. n-2      reduce-scatter: rank r sends chunk r - p (mod n) into the successor's slot p; it is added there
    phases n-1 .. 2n-3   all-gather: rank r sends the finished chunk r - p; it lands where it belongs

Each message is a WRITE_WITH_IMM that names (step, bucket, phase). The application acknowledges nothing, since the data
carry the flow control:

- A predecessor fills a slot for step s + 1 after it has finished the bucket of step s. So it holds the final value
  of every chunk, each of which needed this rank's addition from that slot.
- Tensors alternate between two buffers. The predecessor writes a finished chunk of step s + 2 only after this rank
  has sent it for step s + 2. This rank does that only when step s is checked and its own sends of step s are complete.
- Messages that come before this rank has begun the step wait in their slots. Finished chunks cannot be among them.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

FLOAT_BYTES = 4
BUFFERS = 2
"""Tensor buffers in turn: the rank checks one while the other is under way."""
PHASE_BITS = 10
BUCKET_BITS = 10
STEP_BITS = 12


def name_message(step: int, bucket: int, phase: int) -> int:
    """The 32-bit immediate that names a message."""
    return (step % (1 << STEP_BITS)) << (BUCKET_BITS + PHASE_BITS) | bucket << PHASE_BITS | phase


def named_message(imm: int) -> tuple[int, int, int]:
    """(step modulo 2**STEP_BITS, bucket, phase) of an immediate."""
    return (
        imm >> (BUCKET_BITS + PHASE_BITS),
        imm >> PHASE_BITS & ((1 << BUCKET_BITS) - 1),
        imm & ((1 << PHASE_BITS) - 1),
    )


@dataclass(frozen=True, slots=True)
class RingShape:
    """Sizes of a ring all-reduce. The places of all bytes follow from them."""

    ranks: int
    buckets: int
    elements: int
    """float32 values per tensor; a multiple of ranks * buckets."""

    def __post_init__(self) -> None:
        if not 2 <= self.ranks <= (1 << PHASE_BITS) // 2 or not 1 <= self.buckets < 1 << BUCKET_BITS:
            raise ValueError(f"a ring of {self.ranks} ranks with {self.buckets} buckets is not possible")
        if self.elements < 1 or self.elements % (self.ranks * self.buckets):
            raise ValueError(f"{self.elements} values cannot be cut into {self.ranks} x {self.buckets} chunks")

    @property
    def phases(self) -> int:
        """Messages per bucket and step from each rank to the next."""
        return 2 * (self.ranks - 1)

    @property
    def chunk(self) -> int:
        """Values per chunk."""
        return self.elements // (self.ranks * self.buckets)

    @property
    def bucket(self) -> int:
        """Values per bucket."""
        return self.elements // self.buckets

    @property
    def memory(self) -> int:
        """Values in a rank's memory: the tensor buffers, then the slots."""
        return BUFFERS * self.elements + self.buckets * (self.ranks - 1) * self.chunk

    def tensor_at(self, step: int, bucket: int, chunk: int = 0) -> int:
        """First value of a chunk of the tensor of a step."""
        return (step % BUFFERS) * self.elements + bucket * self.bucket + chunk * self.chunk

    def slot_at(self, bucket: int, phase: int) -> int:
        """First value of the slot in which phase `phase` of a bucket lands."""
        return BUFFERS * self.elements + (bucket * (self.ranks - 1) + phase) * self.chunk

    def sent_chunk(self, rank: int, phase: int) -> int:
        """Number of the chunk that a rank sends in a phase."""
        return (rank - phase) % self.ranks

    def lands_at(self, rank: int, step: int, bucket: int, phase: int) -> int:
        """Where in the successor's memory the message of `rank` lands: first value."""
        if phase < self.ranks - 1:
            return self.slot_at(bucket, phase)
        return self.tensor_at(step, bucket, self.sent_chunk(rank, phase))


class Send(NamedTuple):
    """A chunk to send to the successor. Places count values from the start of the memory."""

    step: int
    bucket: int
    phase: int
    source: int
    target: int
    length: int


@dataclass(slots=True)
class _Bucket:
    """The progress of one bucket."""

    step: int = -1
    """The step under way or, if `done`, the last one finished."""
    done: bool = True
    phase: int = 0
    """How many messages of the step were processed."""
    waiting: int = 0
    """Messages of the next step that came before this rank has begun it. They are processed in order of phase."""
    unacknowledged: list[int] = field(default_factory=lambda: [0] * BUFFERS)
    """By buffer, how many sends are not yet complete."""


class RingError(Exception):
    """A message that the protocol does not allow here: a byte was, or may be, overwritten before its use."""


class RingRank:
    """One rank's part. `memory` holds `shape.memory` values; the predecessor writes into the same memory."""

    def __init__(self, shape: RingShape, rank: int, memory: Floats) -> None:
        assert memory.shape == (shape.memory,)
        self.shape = shape
        self.rank = rank
        self._memory = memory
        self._buckets = [_Bucket() for _ in range(shape.buckets)]
        self._unfinished: dict[int, int] = {}
        """Step -> how many buckets are left."""
        self.finished_steps = 0
        """How many steps have all buckets reduced."""

    def tensor(self, step: int, bucket: int) -> Floats:
        """A bucket of the tensor of a step: the gradient before the step, the sum after it."""
        start = self.shape.tensor_at(step, bucket)
        return self._memory[start : start + self.shape.bucket]

    def may_begin(self, bucket: int) -> int | None:
        """The step that this bucket could begin now, or None.

        At most one step ahead of the slowest bucket, and not before the sends from the same buffer are complete.
        """
        state = self._buckets[bucket]
        step = state.step + 1
        if not state.done or step > self.finished_steps + 1 or state.unacknowledged[step % BUFFERS]:
            return None
        return step

    def begin(self, bucket: int) -> list[Send]:
        """Begin the step of `may_begin`. The gradient must be in `tensor(step, bucket)`. Returns what to send now."""
        state = self._buckets[bucket]
        state.step += 1
        state.done = False
        state.phase = 0
        self._unfinished.setdefault(state.step, self.shape.buckets)
        sends = [self._send(state, bucket, 0)]
        waiting, state.waiting = state.waiting, 0
        for _ in range(waiting):
            sends += self._take_in(state, bucket)
        return sends

    def arrived(self, imm: int) -> tuple[list[Send], int | None]:
        """Take a message that is in place: (what to send now, the step that this bucket finished with it or None)."""
        tag, bucket, phase = named_message(imm)
        if bucket >= self.shape.buckets:
            raise RingError(f"rank {self.rank}: a message for bucket {bucket} of {self.shape.buckets}")
        state = self._buckets[bucket]
        step = state.step + state.done
        expected = state.waiting if state.done else state.phase
        if tag != step % (1 << STEP_BITS) or phase != expected or (state.done and phase >= self.shape.ranks - 1):
            raise RingError(
                f"rank {self.rank}, bucket {bucket}: message of step {tag} phase {phase} "
                f"came where step {step} phase {expected} was due"
            )
        if state.done:
            state.waiting += 1
            return [], None
        sends = self._take_in(state, bucket)
        return sends, state.step if state.done else None

    def sent(self, imm: int) -> None:
        """Note that one of our messages is complete at the successor."""
        tag, bucket, _ = named_message(imm)
        self._buckets[bucket].unacknowledged[tag % BUFFERS] -= 1

    def _take_in(self, state: _Bucket, bucket: int) -> list[Send]:
        shape, phase = self.shape, state.phase
        state.phase += 1
        if phase < shape.ranks - 1:
            chunk = shape.sent_chunk(self.rank, phase + 1)
            own, slot = shape.tensor_at(state.step, bucket, chunk), shape.slot_at(bucket, phase)
            mine = self._memory[own : own + shape.chunk]
            np.add(mine, self._memory[slot : slot + shape.chunk], out=mine)
        if state.phase < shape.phases:
            return [self._send(state, bucket, state.phase)]
        state.done = True
        self._unfinished[state.step] -= 1
        while self._unfinished.get(self.finished_steps) == 0:
            del self._unfinished[self.finished_steps]
            self.finished_steps += 1
        return []

    def _send(self, state: _Bucket, bucket: int, phase: int) -> Send:
        shape, step = self.shape, state.step
        state.unacknowledged[step % BUFFERS] += 1
        source = shape.tensor_at(step, bucket, shape.sent_chunk(self.rank, phase))
        return Send(step, bucket, phase, source, shape.lands_at(self.rank, step, bucket, phase), shape.chunk)
