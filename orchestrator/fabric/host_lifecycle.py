"""Kills and starts the share of a host that a `host_crash` hits; the nodes of that host die and return by themselves.

Owns when a share is killed: when all nodes of its host have died in the crash. Owns when it is started again: when
one of these nodes is to be born. So no node is born on a share that is about to die. Nodes die at exact instants by
themselves. `orchestrator.fabric.lifecycle` starts them again and holds fabric time for them.
`orchestrator.hosts.cluster` kills and starts shares.
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
    """A time in which a host is dead, because of one fault or of several that overlap or touch."""

    from_ns: Instant
    until_ns: Instant
    of: frozenset[_Part]


class Shares(Protocol):
    """What this module needs of `orchestrator.hosts.cluster.Cluster`."""

    async def kill_share(self, number: int) -> None:
        """SIGKILL every process of a host's share."""
        ...

    async def start_share(self, number: int) -> None:
        """Start the share again; afterwards nodes can be born on it."""
        ...

    def condition(self, number: int) -> tuple[str, str]:
        """`runs`, `starts` or `lost`, and the reason."""
        ...


class Nodes(Protocol):
    """What this module needs of `orchestrator.fabric.lifecycle.Lifecycle`."""

    def alive(self, node: str) -> bool:
        """Whether a process carries the node."""
        ...

    def begins_ns(self, node: str) -> Instant | None:
        """When the node's present life begins, or else its next one; None when it has neither."""
        ...

    async def recall(self, node: str) -> None:
        """End a process that waits for a future life, and start another for that life."""
        ...


class HostLifecycle:
    """Kills and starts the shares of one fabric's hosts as `host_crash` faults demand."""

    def __init__(
        self,
        host_map: HostMap,
        numbers: Callable[[str], int],
        table: FaultTable,
        shares: Shares,
        nodes: Nodes,
    ) -> None:
        """`numbers`: node -> number of its host among the sites."""
        self._hosts = {numbers(there[0]): host for host, there in host_map.nodes.items()}
        self._number_of = {node: number for number, host in self._hosts.items() for node in host_map.nodes[host]}
        self._host_map = host_map
        self._table = table
        self._shares = shares
        self._nodes = nodes
        self._over: dict[int, frozenset[_Part]] = defaultdict(frozenset)
        """Host -> the windows of those crashes for which its share has already been killed."""
        self._killed: set[int] = set()
        self._killing: set[int] = set()
        self._starts: dict[int, asyncio.Task[None]] = {}
        self._inside: dict[int, set[str]] = defaultdict(set)
        """Host -> nodes that are being born on its share."""
        self._recalled: set[str] = set()
        self._moved = asyncio.Event()
        self._closed = False
        self._background = Background(_TROUBLES, lambda _about, _error: None)  # the birth that waits reports errors

    # Births.

    def waits(self, node: str, start_ns: Instant) -> bool:
        """Whether the birth of a node has to wait, now or later, until fabric time reaches a crash of its host.

        `start_ns`: when the life begins for which it is born.
        """
        number = self._number_of.get(node)
        if number is None or number in self._killing or node in self._inside[number]:
            return False
        return self._next_ns(number, start_ns) is not None

    @asynccontextmanager
    async def birth(self, node: str, start_ns: Instant) -> AsyncIterator[None]:
        """Wrap the birth of a node for a life that starts at `start_ns`: its host has a share and keeps it meanwhile.

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
            if self._shares.condition(number)[0] == "lost":  # otherwise another caller has started it
                await self._shares.start_share(number)
            self._killed.discard(number)
        finally:
            del self._starts[number]

    # Deaths.

    def _next(self, number: int) -> "_Crash | None":
        """The first crash of a host for which its share has not been killed yet."""
        host = self._hosts[number]
        faults = [one for one in self._table.of_kind("host_crash") if host in one.targets]
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
        # A window that merged into an executed crash stays part of it, even after the table forgets the other windows.
        self._over[number] = frozenset().union(*(crash.of for crash in over))
        return next((crash for crash in found if crash not in over), None)

    def _next_ns(self, number: int, before_ns: Instant) -> Instant | None:
        """When the next crash begins, if that is before `before_ns`; else None."""
        crash = self._next(number)
        return crash.from_ns if crash is not None and crash.from_ns < before_ns else None

    def look(self) -> None:
        """Kill the shares that are due. Call it when a node has died or been born, or when faults have changed."""
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
            # This process waits for a life after the crash. It would die with the share, so start it again later.
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
        """Cancel what is under way."""
        self._closed = True
        await self._background.close()
