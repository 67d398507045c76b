"""Shares that die and return with the nodes of their hosts: what `host_crash` is beside the deaths of those nodes.

Owns when a share is killed (all nodes of its host have died of the crash) and when it is started anew (one of them is
to be born), so that nobody is born on a share that is about to die. Nodes die at exact instants by themselves and are
born by `orchestrator.fabric.lifecycle`, which holds fabric time for them; how a share is killed and started is
`orchestrator.hosts.cluster`'s.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol, TypeAlias

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.units import Instant
from orchestrator.faults.host_map import HostMap
from orchestrator.faults.table import FaultTable
from orchestrator.process.background import Background
from orchestrator.process.launcher import ProcessFailedError

_TROUBLES = (ConfigError, RefusedError, ProcessFailedError)


_Part: TypeAlias = tuple[str, Instant]
"""A window of a fault: the fault's id, the window's start."""


class _Crash(NamedTuple):
    """A time without a host, of one fault or of several that touch."""

    from_ns: Instant
    until_ns: Instant
    of: frozenset[_Part]


class Shares(Protocol):
    """What is asked of `orchestrator.hosts.cluster.Cluster`."""

    async def kill_share(self, number: int) -> None:
        """SIGKILL everything of a host's share."""
        ...

    async def start_share(self, number: int) -> None:
        """Start it anew; nodes can be born on it afterwards."""
        ...

    def condition(self, number: int) -> tuple[str, str]:
        """`runs`, `starts` or `lost`, and why."""
        ...


class Nodes(Protocol):
    """What is asked of `orchestrator.fabric.lifecycle.Lifecycle`."""

    def alive(self, node: str) -> bool:
        """Whether a process carries it."""
        ...

    def begins_ns(self, node: str) -> Instant | None:
        """When the life begins that it is in, or is to have next; None without any."""
        ...

    async def recall(self, node: str) -> None:
        """End a process that waits for a life to come, and have it born anew."""
        ...


class HostLifecycle:
    """The shares of one fabric's hosts, as far as faults kill them."""

    def __init__(
        self,
        host_map: HostMap,
        numbers: Callable[[str], int],
        table: FaultTable,
        shares: Shares,
        nodes: Nodes,
    ) -> None:
        """`numbers`: of a node's host among the sites."""
        self._hosts = {numbers(there[0]): host for host, there in host_map.nodes.items()}
        self._number_of = {node: number for number, host in self._hosts.items() for node in host_map.nodes[host]}
        self._host_map = host_map
        self._table = table
        self._shares = shares
        self._nodes = nodes
        self._over: dict[int, frozenset[_Part]] = defaultdict(frozenset)
        """Host -> what has come to crashes of which its share has been killed."""
        self._killed: set[int] = set()
        self._killing: set[int] = set()
        self._starts: dict[int, asyncio.Task[None]] = {}
        self._inside: dict[int, set[str]] = defaultdict(set)
        """Host -> nodes whose births are under way on its share."""
        self._recalled: set[str] = set()
        self._moved = asyncio.Event()
        self._closed = False
        self._background = Background(_TROUBLES, lambda _about, _error: None)  # whoever waits for a share says so

    # Births.

    def waits(self, node: str, start_ns: Instant) -> bool:
        """Whether the birth of a node for a life that begins then waits, or will, until fabric time has come to a crash
        of its host."""
        number = self._number_of.get(node)
        if number is None or number in self._killing or node in self._inside[number]:
            return False
        return self._next_ns(number, start_ns) is not None

    @asynccontextmanager
    async def birth(self, node: str, start_ns: Instant) -> AsyncIterator[None]:
        """Around the birth of a node for a life that begins then: its host has a share, which stays meanwhile.

        Raises ConfigError, RefusedError and ProcessFailedError when the share cannot be started.
        """
        number = self._number_of.get(node)
        if number is None:
            yield
            return
        while number in self._killing or self._next_ns(number, start_ns) is not None:
            await self._moved.wait()
        self._inside[number].add(node)
        try:
            await self._ready(number)
            yield
        finally:
            self._inside[number].discard(node)
            self.look()

    async def _ready(self, number: int) -> None:
        if number not in self._killed:
            return
        if number not in self._starts:
            self._starts[number] = self._background.start(self._start(number))
        await asyncio.shield(self._starts[number])

    async def _start(self, number: int) -> None:
        try:
            if self._shares.condition(number)[0] == "lost":  # else somebody else has started it
                await self._shares.start_share(number)
            self._killed.discard(number)
        finally:
            del self._starts[number]

    # Deaths.

    def _next(self, number: int) -> "_Crash | None":
        """The first crash of a host of which its share has not been killed."""
        host = self._hosts[number]
        faults = [one for one in self._table.faults(0) if one.kind == "host_crash" and host in one.targets]
        windows = sorted((window.start_ns, window.end_ns, fault.id) for fault in faults for window in fault.windows)
        found: list[_Crash] = []
        for start_ns, end_ns, name in windows:
            if found and start_ns <= found[-1].until_ns:
                found[-1] = _Crash(
                    found[-1].from_ns, max(found[-1].until_ns, end_ns), found[-1].of | {(name, start_ns)}
                )
            else:
                found.append(_Crash(start_ns, end_ns, frozenset({(name, start_ns)})))
        over = [crash for crash in found if crash.of & self._over[number]]
        # What came to a crash of which the share has been killed is part of it, also when the rest has been forgotten.
        self._over[number] = frozenset().union(*(crash.of for crash in over))
        return next((crash for crash in found if crash not in over), None)

    def _next_ns(self, number: int, before_ns: Instant) -> Instant | None:
        """When it begins, if that is before an instant."""
        crash = self._next(number)
        return crash.from_ns if crash is not None and crash.from_ns < before_ns else None

    def look(self) -> None:
        """A node has died or been born, or faults have changed: kill the shares whose time it is."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        for number in () if self._closed else self._hosts:
            crash = None if number in self._killing else self._next(number)
            if crash is not None and not self._inside[number]:
                self._look_at(number, crash)

    def _look_at(self, number: int, crash: "_Crash") -> None:
        nodes = self._host_map.nodes[self._hosts[number]]
        begins = {node: self._nodes.begins_ns(node) for node in nodes}
        early = [node for node, begin_ns in begins.items() if begin_ns is not None and begin_ns <= crash.from_ns]
        alive = [node for node in nodes if self._nodes.alive(node)]
        for node in alive:
            # Its process waits for a life after the crash, and would die with the share.
            if node not in early and node not in self._recalled:
                self._recalled.add(node)
                self._background.start(self._recall(node))
        if not alive and not early:
            self._over[number] |= crash.of
            self._killing.add(number)
            self._background.start(self._kill(number))

    async def _recall(self, node: str) -> None:
        try:
            await self._nodes.recall(node)
        finally:
            self._recalled.discard(node)

    async def _kill(self, number: int) -> None:
        try:
            await self._shares.kill_share(number)
        finally:
            self._killed.add(number)
            self._killing.discard(number)
            self.look()

    async def close(self) -> None:
        """Forget what is under way."""
        self._closed = True
        await self._background.close()
