"""The orchestrator's side of a set of worker processes: starts them, tells them about each other, listens, ends them.

Owns the channels and the out-of-band exchange between workers. The caller (`demo`, `perf`, `send`) tells them what to
do. Workers are started through a `Spawn`, so the same group runs as processes of a fabric, on any hosts, or as threads
in tests.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from orchestrator.workers.channel import (
    ChannelClosedError,
    GroupChannel,
    Message,
    channel_pair,
)

END_WALL_S = 5.0
"""How long to wait for the end of a worker that has closed its channel, to report how it ended."""


class WorkerProcess(Protocol):
    """A worker that was started."""

    @property
    def ended(self) -> "asyncio.Future[int]":
        """Done when it has ended."""
        ...

    def how_it_ended(self) -> str:
        """Its exit code or signal, and its last words."""
        ...


Spawn: TypeAlias = Callable[[str, Mapping[str, Any], socket.socket], Awaitable[WorkerProcess]]
"""(name, arguments of `worker.main`, the worker's end of its channel): starts a process with a copy of that end."""


class WorkerFailedError(Exception):
    """A worker failed or vanished. The text says which and why."""


@dataclass(frozen=True, slots=True)
class Member:
    """One worker to be started."""

    name: str
    """The NIC it works at."""
    verbs: str
    """Path of that NIC's socket."""
    role: str
    """"allreduce" or "traffic"."""
    peers: tuple[int, ...]
    """Numbers of the members it talks to, each of which must name it too."""
    arguments: Mapping[str, Any]
    """Arguments of the role."""


class WorkerGroup:
    """Workers that know their peers. `started_group` makes it."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)
        self._channels: list[GroupChannel] = []
        self._workers: list[WorkerProcess] = []

    def tell(self, number: int, kind: str, **fields: Any) -> None:
        """Send one worker a message."""
        self._channels[number].send(kind, **fields)

    async def hand(self, number: int, kind: str, **fields: Any) -> None:
        """Send one worker a long message, when it has room."""
        await self._channels[number].hand(kind, **fields)

    def tell_all(self, kind: str, **fields: Any) -> None:
        """Send all workers the same message."""
        for channel in self._channels:
            channel.send(kind, **fields)

    async def hear(self, number: int, kind: str | None = None) -> Message:
        """The next message of one worker, which must have this kind if one is given. Raises WorkerFailedError."""
        name = self.members[number].name
        try:
            message = await self._channels[number].receive()
        except ChannelClosedError:
            raise WorkerFailedError(f"the workload process at {name} has died{await self._how(number)}") from None
        if message["kind"] == "failed":
            raise WorkerFailedError(str(message["reason"]))
        if kind is not None and message["kind"] != kind:
            raise WorkerFailedError(f"{name} said {message['kind']} where {kind} was due")
        return message

    async def _how(self, number: int) -> str:
        """How a worker that closed its channel ended; "" if it has not yet."""
        worker = self._workers[number]
        await asyncio.wait([worker.ended], timeout=END_WALL_S)
        return f": {worker.how_it_ended()}" if worker.ended.done() else ""

    async def hear_all(self, kind: str, numbers: Sequence[int] | None = None) -> list[Message]:
        """One message of this kind from each of `numbers` (None: from all, in the order of the members).

        Raises the failure that came first, since it causes others.
        """
        tasks: list[asyncio.Task[Message]] = []
        asked = range(len(self.members)) if numbers is None else numbers
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.hear(number, kind)) for number in asked]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _introduce(self) -> None:
        """Tell every worker its peers' ends. No worker sends before all can receive."""
        hellos = await self.hear_all("hello")
        for number, member in enumerate(self.members):
            ends = [
                [peer, dict(hellos[peer]["ends"])[number], hellos[peer]["va"], hellos[peer]["r_key"]]
                for peer in member.peers
            ]
            self.tell(number, "peers", ends=ends)
        await self.hear_all("connected")
        self.tell_all("start")
        await self.hear_all("ready")

    async def _hire(self, spawn: Spawn) -> None:
        for number, member in enumerate(self.members):
            mine, theirs = channel_pair()
            self._channels.append(GroupChannel(mine))
            arguments = {
                **member.arguments,
                "name": member.name,
                "verbs": member.verbs,
                "role": member.role,
                "number": number,
                "peers": list(member.peers),
            }
            try:
                self._workers.append(await spawn(member.name, arguments, theirs))
            finally:
                theirs.close()

    def let_go(self) -> None:
        """Close the channels. The workers then end by themselves, and their QPs with them."""
        for channel in self._channels:
            channel.close()


@asynccontextmanager
async def started_group(members: Sequence[Member], spawn: Spawn) -> AsyncIterator[WorkerGroup]:
    """A group whose workers know their peers and can send. Ends it on exit. Raises WorkerFailedError."""
    for number, member in enumerate(members):
        for peer in member.peers:
            assert peer != number, "a worker is no peer of its own"
            assert number in members[peer].peers, "peers are mutual"
    group = WorkerGroup(members)
    try:
        await group._hire(spawn)
        await group._introduce()
        yield group
    finally:
        group.let_go()
