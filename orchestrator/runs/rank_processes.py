"""A workload whose ranks are worker processes: its steps granted and counted, and its results told as a NIC tells them.

Owns the granting of steps, what each rank reported, and when ranks without a number of steps are told to stop. The
ranks are `orchestrator.workers.allreduce` processes; whoever runs a scenario asks here what a NIC would answer to
`progress` and `programs`.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from nicd.programs.program import Program
from nicd.programs.record import Flow, RankRecord
from orchestrator.process.background import Background
from orchestrator.runs.worker_placement import ring_peers
from orchestrator.scenario.process_kinds import figures_of, linger_ns, shape_of
from orchestrator.workers.channel import Message
from orchestrator.workers.group import Member, WorkerFailedError, WorkerGroup

FLOAT_BYTES: Final = 4
GRANTED_AHEAD: Final = 2
"""Steps that may be begun beyond those that every rank has finished: the one under way and the next."""
SILENT_WALL_S: Final = 120.0
"""Ranks of which nothing is heard for so long, while nothing is pending in the fabric, never go on."""


class RankProcesses:
    """All ranks of one program."""

    def __init__(self, program: Program, topology: Topology) -> None:
        self.program = program
        self.nics: Sequence[str] = [topology.node_name(index) for index in program.ranks]
        self.granted = 0
        self.shape = shape_of(program)
        self._linger_ns = linger_ns(program, topology)
        self._steps: int | None = figures_of(program)["steps"]
        self._records = [RankRecord(program.begin_ns) for _ in self.nics]
        self._number_of = {nic: number for number, nic in enumerate(self.nics)}
        self._last = False
        self._stop_ns = NEVER
        self._group: WorkerGroup | None = None
        self._begun = False
        self._heard_s = time.monotonic()
        self._background = Background((WorkerFailedError,), self._failed)

    def members(self, verbs_path: Any) -> list[Member]:
        """The processes to start; `verbs_path` gives the host API socket of a NIC."""
        ranks = len(self.nics)
        size = {"ranks": ranks, "buckets": self.shape.buckets, "elements": self.shape.elements}
        return [
            Member(
                nic,
                verbs_path(nic),
                "allreduce",
                ring_peers(rank, ranks),
                {"rank": rank, "seed": self.program.seed, **size},
            )
            for rank, nic in enumerate(self.nics)
        ]

    @property
    def finished(self) -> int:
        """Steps that every rank has finished."""
        return min(len(record.steps) for record in self._records)

    @property
    def computing(self) -> bool:
        """Whether some rank is at work, and will post again though nothing may be pending in the fabric."""
        return self._begun and self.to_do

    @property
    def to_do(self) -> bool:
        """Whether some rank still has something to do. Ranks that have been silent for too long never will."""
        if self._begun and time.monotonic() - self._heard_s > SILENT_WALL_S:
            return False
        return any(record.state == "running" for record in self._records)

    def due(self, at_ns: Instant) -> bool:
        """Whether the ranks are to begin by an instant, and have not."""
        return not self._begun and self.program.begin_ns <= at_ns

    async def begin(self, group: WorkerGroup) -> None:
        """Let the ranks begin, and wait until each has posted all that it can before anything arrives.

        Fabric time may stand still meanwhile: what they post goes out when it moves. A rank that fails is told as one.
        """
        self._group, self._begun, self._heard_s = group, True, time.monotonic()
        self._grant()
        waiting = [self._background.start(self._hear(number), nic) for number, nic in enumerate(self.nics)]
        await asyncio.gather(*waiting, return_exceptions=True)
        for number, nic in enumerate(self.nics):
            if self._records[number].state == "running":
                self._background.start(self._listen(number), nic)

    def nothing_to_come(self, at_ns: Instant) -> None:
        """As of a look, nothing of the timetable is left: ranks without a number of steps soon have their last."""
        self._stop_ns = min(self._stop_ns, at_ns + self._linger_ns)
        if self._begun and not self._last and self._steps is None and at_ns >= self._stop_ns:
            self._last = True
            self._grant()

    async def close(self) -> None:
        """Listen no more; the processes end when their channels are closed."""
        await self._background.close()

    def progress(self, nic: str) -> dict[str, Any]:
        """As a NIC answers to `progress`, of this program alone."""
        if nic not in self._number_of:
            return {}
        return {self.program.name: {"number": self.program.number, **self._records[self._number_of[nic]].progress()}}

    def records(self, nic: str) -> list[dict[str, Any]]:
        """As a NIC answers to `programs`, of this program alone."""
        if nic not in self._number_of:
            return []
        number, program = self._number_of[nic], self.program
        return [{"name": program.name, "kind": program.kind, "rank": number, **self._records[number].record()}]

    def _grant(self) -> None:
        wanted = self.granted if self._last else self.finished + GRANTED_AHEAD
        if self._steps is not None:
            wanted = min(wanted, self._steps)
            self._last = wanted == self._steps
        if wanted > self.granted or self._last:
            self.granted = wanted
            assert self._group is not None
            self._group.tell_all("grant", steps=wanted, last=self._last)

    async def _hear(self, number: int) -> Message:
        assert self._group is not None
        message = await self._group.hear(number)
        self._heard_s = time.monotonic()
        return message

    async def _listen(self, number: int) -> None:
        while (message := await self._hear(number))["kind"] != "done":
            self._finish(number, message)
            if not self._last:
                self._grant()
        record = self._records[number]
        record.state = "done"
        record.end_ns = record.steps[-1][2] if record.steps else record.begin_ns

    def _finish(self, number: int, message: Message) -> None:
        """A rank has finished a step, and compared all of it."""
        record, ranks = self._records[number], len(self.nics)
        begin_ns = record.steps[-1][2] if record.steps else record.begin_ns
        end_ns = max(begin_ns, message["at_ns"])
        record.steps.append((begin_ns, begin_ns, end_ns))
        messages = self.shape.phases * self.shape.buckets
        size = messages * self.shape.chunk * FLOAT_BYTES
        record.messages_sent += messages
        record.messages_received += messages
        record.bytes_sent += size
        record.bytes_received += size
        record.bytes_verified += message["checked"]
        record.bytes_wrong += message["wrong"] * FLOAT_BYTES
        sender = self.nics[(number - 1) % ranks]
        flow = record.flows.setdefault(sender, Flow())
        flow.first_ns = flow.first_ns or begin_ns
        flow.last_ns = end_ns
        flow.messages += messages
        flow.received_bytes += size
        record.placed[sender] = flow.received_bytes

    def _failed(self, nic: str, error: Exception) -> None:
        """One rank has failed, and none of the others can finish a step without it."""
        for name, number in self._number_of.items():
            record = self._records[number]
            if name == nic or record.state == "running":
                record.state = "failed"
                record.reason = record.reason or (str(error) if name == nic else f"{nic} failed")
