"""The role of a training rank: one all-reduce after another, with every sum checked bit for bit.

Owns the loop that turns completions into additions and sends. `ring` is the protocol, `tensors` makes the data. Steps
are synchronous per bucket: a bucket begins its next step when it is reduced in this one and no bucket is more than one
step behind. Frameworks that overlap buckets with computation do the same. So the NIC never waits for a whole step to
end. A rank checks a finished bucket after it has posted everything that can be sent.

    orchestrator -> rank   grant {steps: how many may begin, last: no more will come}
    rank -> orchestrator   begun: all is posted that can be before anything has arrived
                           step {step, at_ns: its last chunk arrived, fabric time, checked: bytes, wrong: values}
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from nicd.verbs import Cqe, Work, work_of
from orchestrator.workers.ring import (
    FLOAT_BYTES,
    Floats,
    RingError,
    RingRank,
    RingShape,
    Send,
    name_message,
    named_message,
)
from orchestrator.workers.station import Station, WorkloadError
from orchestrator.workers.tensors import Tensors


class Rank:
    """One rank of the ring at its NIC."""

    def __init__(self, station: Station, arguments: Mapping[str, Any]) -> None:
        self.shape = RingShape(arguments["ranks"], arguments["buckets"], arguments["elements"])
        self.rank: int = arguments["rank"]
        self._station = station
        successor, predecessor = (self.rank + 1) % self.shape.ranks, (self.rank - 1) % self.shape.ranks
        self._tensors = Tensors(self.shape, arguments["seed"])
        station.connect(sorted({successor, predecessor}), self.shape.memory * FLOAT_BYTES)
        self._next = station.peers[successor]
        values: Floats = np.frombuffer(station.memory.buffer, np.float32)
        self._ring = RingRank(self.shape, self.rank, values)
        self._to_check: deque[tuple[int, int]] = deque()
        self._checked: dict[int, int] = {}
        """Step that is not reported -> how many buckets are checked."""
        self._wrong: dict[int, int] = {}
        self._arrival_ns: dict[int, int] = {}
        self._granted = 0
        self._last = False
        self._reported = 0
        self._unsent = 0
        self._begun = False

    def run(self) -> None:
        """Run until the last granted step is reduced, checked and fully sent."""
        while not (self._last and self._reported == self._granted and not self._unsent):
            if not self._to_check:
                self._station.wait()
            works: list[Work] = []
            for cqe in self._station.completions():
                works += self._completed(cqe)
            self._listen()
            works += self._begin()
            self._unsent += len(works)
            self._station.nic.post(works)
            if self._granted and not self._begun:
                self._begun = True
                self._station.channel.send("begun")
            if self._to_check:
                self._check(*self._to_check.popleft())

    def _listen(self) -> None:
        while (message := self._station.channel.receive(wait=False)) is not None:
            self._granted = message["steps"]
            self._last = message["last"]

    def _completed(self, cqe: Cqe) -> list[Work]:
        imm = cqe.imm or 0
        if cqe.opcode != "recv_with_imm":
            self._unsent -= 1
            self._ring.sent(imm)
            return []
        try:
            sends, finished = self._ring.arrived(imm)
        except RingError as error:
            raise WorkloadError(str(error)) from None
        if finished is not None:
            self._arrival_ns[finished] = max(cqe.at_ns, self._arrival_ns.get(finished, 0))
            self._to_check.append((finished, named_message(imm)[1]))
        return self._works(sends)

    def _begin(self) -> list[Work]:
        """Begin every bucket that may begin, after making its gradient."""
        works: list[Work] = []
        for bucket in range(self.shape.buckets):
            step = self._ring.may_begin(bucket)
            # The step has the buffer of two steps before, which must have been checked.
            if step is None or step >= self._granted or (step - 2, bucket) in self._to_check:
                continue
            self._tensors.fill(step, self.rank, bucket, self._ring.tensor(step, bucket))
            works += self._works(self._ring.begin(bucket))
        return works

    def _works(self, sends: list[Send]) -> list[Work]:
        memory, peer = self._station.memory, self._next
        works = []
        for send in sends:
            imm = name_message(send.step, send.bucket, send.phase)
            target = (peer.va + send.target * FLOAT_BYTES, peer.r_key)
            size = send.length * FLOAT_BYTES
            works.append(work_of(peer.qp, memory, send.source * FLOAT_BYTES, size, target, imm, imm))
        return works

    def _check(self, step: int, bucket: int) -> None:
        result = self._ring.tensor(step, bucket)
        wrong = sum(
            self._tensors.wrong(step, bucket, start, result[start:stop]) for start, stop in self._tensors.blocks()
        )
        self._wrong[step] = self._wrong.get(step, 0) + wrong
        self._checked[step] = self._checked.get(step, 0) + 1
        while self._checked.get(self._reported) == self.shape.buckets:
            done = self._reported
            del self._checked[done]
            self._station.channel.send(
                "step",
                step=done,
                at_ns=self._arrival_ns.pop(done),
                checked=self.shape.elements * FLOAT_BYTES,
                wrong=self._wrong.pop(done),
            )
            self._reported += 1


def run(station: Station, arguments: Mapping[str, Any]) -> None:
    """Run the role. `arguments`: `rank`, `ranks`, `buckets`, `elements`, `seed`."""
    Rank(station, arguments).run()
