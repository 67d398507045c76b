"""Workload processes as threads of the test, at loopback NICs."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from orchestrator.workers.group import Member, Spawn, WorkerGroup, WorkerProcess, started_group
from orchestrator.workers.worker import work
from tests.support.loopback_nics import LoopbackNic
from tests.support.verbs_bench import verbs_bench


class Thread:
    """A worker in a thread."""

    def __init__(self, ended: "asyncio.Future[int]") -> None:
        self.ended = ended

    def how_it_ended(self) -> str:
        return f"exit code {self.ended.result()}"


class Threads:
    """A `Spawn` that runs each worker in a thread; `codes` collects how they ended."""

    def __init__(self) -> None:
        self.running: list[asyncio.Task[int]] = []

    @property
    def spawn(self) -> Spawn:
        async def start(name: str, arguments: Mapping[str, Any], end: socket.socket) -> WorkerProcess:
            own = end.dup()
            self.running.append(asyncio.create_task(asyncio.to_thread(work, arguments, own)))
            return Thread(self.running[-1])

        return start

    async def codes(self) -> list[int]:
        """The exit codes, once everybody has ended."""
        return list(await asyncio.wait_for(asyncio.gather(*self.running), 20))


@asynccontextmanager
async def group_at_loopback(
    folder: Path, members: list[Member]
) -> AsyncIterator[tuple[WorkerGroup, list[LoopbackNic], Threads]]:
    """A group whose members sit at NICs h000, h001, ...; on exit everybody must have ended."""
    threads = Threads()
    async with verbs_bench(folder, count=len(members)) as (nics, _):
        async with started_group(members, threads.spawn) as group:
            yield group, nics, threads
        await threads.codes()


def member(folder: Path, number: int, role: str, peers: tuple[int, ...], **arguments: Any) -> Member:
    """A member at NIC `number` of the bench."""
    return Member(f"h{number:03d}", str(folder / f"h{number:03d}"), role, peers, arguments)
