"""Processes of a fabric that are no daemons: workers at NICs, on the hosts of these NICs, and programs on this host.

Owns the list of these processes, and ends them. `orchestrator.hosts.share` starts processes on a host;
`orchestrator.workers.group` tells workers what to do.
"""

import asyncio
import signal
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.placement.site import LEADER
from orchestrator.process.launcher import Child
from orchestrator.process.run_folder import verbs_socket


class WorkerProcesses:
    """The worker processes of one fabric. Each ends with the fabric or with its host, at the latest."""

    def __init__(self, cluster: Cluster) -> None:
        """`cluster`: the hosts, open before the first process is started."""
        self._cluster = cluster
        self._here: list[Child] = []
        """The living ones on the leader's host."""

    def __iter__(self) -> Iterator[Child]:
        """The living processes on the leader's host."""
        return iter(self._here)

    def verbs_path(self, nic: str) -> str:
        """The path of a NIC's host API socket, on that NIC's own host."""
        return str(verbs_socket(self._cluster.share(self._cluster.sites.number(nic)).folder, nic))

    async def start(
        self,
        name: str,
        entry: str,
        arguments: Any,
        *,
        nic: str | None = None,
        channel: socket.socket | None = None,
        preload: Sequence[str] = (),
    ) -> Child:
        """Start a process that runs `entry` ("module:function") as `function(arguments, [number of its channel])`.

        It runs on the host of `nic`, by default on the leader's. `channel` is its end of a socket pair; the process
        gets a copy. A worker at a NIC must have one. Its output goes to logs/NAME.log. `preload` modules are imported
        once for all later processes. `child.ended` resolves to its exit code. Raises ProcessFailedError, or ConfigError
        that says what another host lacks.
        """
        assert nic is None or channel is not None
        number = LEADER if nic is None else self._cluster.sites.number(nic)
        child = await self._cluster.share(number).spawn_worker(name, entry, arguments, preload, channel)
        if number == LEADER:
            self._here.append(child)
            child.ended.add_done_callback(lambda _ended: self._here.remove(child))
        return child

    async def dismiss(self, child: Child, number: int, wall_s: float) -> None:
        """Signal a process on the leader's host, and wait up to `wall_s` until it has ended."""
        await self._cluster.share(LEADER).signal(child, number)
        await asyncio.wait([child.ended], timeout=wall_s)

    async def close(self) -> None:
        """End every process on this host; on other hosts they end with their share. Raises ProcessFailedError."""
        for child in [*self._here]:
            await self._cluster.share(LEADER).signal(child, signal.SIGKILL)
