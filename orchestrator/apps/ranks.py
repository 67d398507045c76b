"""The training of the demonstration seen from outside: eight ranks, their steps, and when to stop.

Owns the granting of steps and what the ranks reported; the ranks are `workload.allreduce` processes.
"""

import asyncio
from dataclasses import dataclass, field

from mrcfabric.units import Instant
from orchestrator.workers.group import WorkerFailedError, WorkerGroup

GRANTED_AHEAD = 2
"""Steps that may be begun beyond those that every rank has finished: the one under way and the next."""


@dataclass(slots=True)
class Ranks:
    """All ranks of one group. Run `serve` as a task; `stop` lets it end."""

    group: WorkerGroup
    finished: list[int] = field(init=False)
    """Steps per rank that are reduced and checked."""
    step_ends_ns: dict[int, Instant] = field(default_factory=dict)
    """When the slowest rank so far had finished a step."""
    wrong_values: int = 0
    bytes_checked: int = 0
    granted: int = 0
    failures: list[str] = field(default_factory=list)
    _stopping: bool = False

    def __post_init__(self) -> None:
        self.finished = [0] * len(self.group.members)

    @property
    def steps(self) -> int:
        """Steps that every rank has finished."""
        return min(self.finished)

    async def serve(self) -> None:
        """Grant and listen until every rank is done. Raises WorkerFailedError for the first that fails."""
        self._grant()
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(len(self.finished)):
                    group.create_task(self._listen(number))
        except ExceptionGroup as failures:
            self.failures = [str(failure) for failure in failures.exceptions]
            raise WorkerFailedError(self.failures[0]) from None

    def stop(self) -> None:
        """No more steps than granted."""
        self._stopping = True
        self._grant()

    def _grant(self) -> None:
        wanted = self.granted if self._stopping else self.steps + GRANTED_AHEAD
        if wanted > self.granted or self._stopping:
            self.granted = wanted
            self.group.tell_all("grant", steps=wanted, last=self._stopping)

    async def _listen(self, number: int) -> None:
        while True:
            message = await self.group.hear(number)
            if message["kind"] == "done":
                return
            if message["kind"] == "begun":
                continue
            step = message["step"]
            self.finished[number] = step + 1
            self.step_ends_ns[step] = max(message["at_ns"], self.step_ends_ns.get(step, 0))
            self.wrong_values += message["wrong"]
            self.bytes_checked += message["checked"]
            if not self._stopping:
                self._grant()

    def record(self) -> dict[str, int]:
        """What the verdict asks for."""
        return {
            "begun": self.granted,
            "finished": self.steps,
            "wrong_values": self.wrong_values,
            "failed_ranks": len(self.failures),
        }
