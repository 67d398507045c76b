"""Putting worker processes to work at a fabric: who sits at which NIC, who talks to whom, and who starts them.

Owns the order of the ring, and what a worker is called and told of its NIC.
"""

import socket
from collections.abc import Mapping
from typing import Any

from mrcfabric.topology import Topology
from orchestrator.fabric.worker_processes import WorkerProcesses
from orchestrator.process.launcher import Child
from orchestrator.workers.entry import ENTRY, PRELOADED
from orchestrator.workers.group import Spawn


def ring_order(topology: Topology) -> list[int]:
    """NIC numbers in ring order: neighbours are below different T0s, so that every edge crosses T1s.

    The i-th NIC of every T0, T0 by T0, then the next: with one T0 alone the edges stay below it.
    """
    per_t0, t0s = topology.nics_per_t0, topology.t0_per_plane
    return [t0 * per_t0 + place for place in range(per_t0) for t0 in range(t0s)]


def ring_peers(rank: int, ranks: int) -> tuple[int, ...]:
    """The ranks that a rank has a QP with."""
    return tuple(sorted({(rank + 1) % ranks, (rank - 1) % ranks}))


def processes_of(workers: WorkerProcesses, prefix: str) -> Spawn:
    """Workers as processes of a fabric, each on the host of its NIC, named `prefix-NIC`."""

    async def spawn(name: str, arguments: Mapping[str, Any], end: socket.socket) -> Child:
        return await workers.start(f"{prefix}-{name}", ENTRY, dict(arguments), nic=name, channel=end, preload=PRELOADED)

    return spawn
