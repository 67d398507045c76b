"""Putting workload processes to work at a fabric: who sits at which NIC, who talks to whom, and who starts them.

Owns the order of the ring and the two ways to start workers: as processes of a fabric of ours, or as threads of the
calling process at a fabric that runs elsewhere on this host.
"""

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

from mrcfabric.topology import Topology
from orchestrator.fabric import Fabric
from orchestrator.workload.crew import Spawn
from orchestrator.workload.worker import ENTRY, work

PRELOADED = ("numpy", "orchestrator.workload.allreduce", "orchestrator.workload.traffic")


def ring_order(topology: Topology) -> list[int]:
    """NIC numbers in ring order: neighbours are below different T0s, so that every edge crosses T1s.

    The i-th NIC of every T0, T0 by T0, then the next: with one T0 alone the edges stay below it.
    """
    per_t0, t0s = topology.nics_per_t0, topology.t0_per_plane
    return [t0 * per_t0 + place for place in range(per_t0) for t0 in range(t0s)]


def ring_peers(rank: int, ranks: int) -> tuple[int, ...]:
    """The ranks that a rank has a QP with."""
    return tuple(sorted({(rank + 1) % ranks, (rank - 1) % ranks}))


def processes_of(fabric: Fabric, prefix: str) -> Spawn:
    """Workers as processes of the fabric, named `prefix-NIC`; they end with it at the latest."""

    async def spawn(name: str, arguments: Mapping[str, Any], end: socket.socket) -> None:
        await fabric.spawn_worker(f"{prefix}-{name}", ENTRY, arguments, fds=[end.fileno()], preload=PRELOADED)

    return spawn


def threads_here() -> tuple[Spawn, list[asyncio.Task[int]]]:
    """Workers as threads of this process, and their tasks: to be awaited after the crew was let go."""
    tasks: list[asyncio.Task[int]] = []

    async def spawn(name: str, arguments: Mapping[str, Any], end: socket.socket) -> None:
        own = end.dup()
        tasks.append(asyncio.create_task(asyncio.to_thread(work, arguments, own), name=name))

    return spawn, tasks
