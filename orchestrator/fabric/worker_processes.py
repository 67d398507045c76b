"""Processes of a fabric that are no daemons: workers at its NICs, on whatever host these run, and programs beside it.

Owns who there is, and their end. How a process comes to be on a host is `orchestrator.hosts.share`'s; what workers are
told is their group's (`orchestrator.workers.group`).
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
    """Of one fabric. Everybody ends with the fabric at the latest, or with the host, if that ends before."""

    def __init__(self, cluster: Cluster) -> None:
        """`cluster`: the hosts, open before the first is started."""
        self._cluster = cluster
        self._here: list[Child] = []
        """Those on the leader's host."""

    def __iter__(self) -> Iterator[Child]:
        """Those on the leader's host that live."""
        return iter(self._here)

    def verbs_path(self, nic: str) -> str:
        """The host API socket of a NIC, as programs of the NIC's own host know it."""
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

        It runs on the host of `nic`, by default on the leader's. `channel` is its end of a socket pair, of which it
        gets a copy; whoever works at a NIC has one. Its output goes to logs/NAME.log; `preload` modules are imported
        once for all to come. `child.ended` brings its exit code. Raises ProcessFailedError, or ConfigError with what
        another host lacks.
        """
        assert nic is None or channel is not None
        number = LEADER if nic is None else self._cluster.sites.number(nic)
        child = await self._cluster.share(number).spawn_worker(name, entry, arguments, preload, channel)
        if number == LEADER:
            self._here.append(child)
            child.ended.add_done_callback(lambda _ended: self._here.remove(child))
        return child

    async def dismiss(self, child: Child, number: int, wall_s: float) -> None:
        """Signal one on the leader's host and wait until it has ended, at most so long."""
        await self._cluster.share(LEADER).signal(child, number)
        await asyncio.wait([child.ended], timeout=wall_s)

    async def close(self) -> None:
        """End everybody here; on other hosts they end with their share. Raises ProcessFailedError."""
        for child in [*self._here]:
            await self._cluster.share(LEADER).signal(child, signal.SIGKILL)
