"""Where a run takes place: in virtual time, or on daemons that are launched for it.

Owns making a backend whose time stands still before the run begins, and clearing it away. What opens one is an
asynchronous context that gives the plan and the backend. A fabric that runs already is `orchestrator.runs.attached`'s.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mrcfabric.errors import ConfigError
from orchestrator.faults.kinds import no_hosts
from orchestrator.hosts.placement.layout import Pack
from orchestrator.runs.backend import Backend
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.process_kinds import of_processes
from orchestrator.sim.backend import SimBackend

if TYPE_CHECKING:
    from orchestrator.hosts.cluster import Cluster

OpenBackend: TypeAlias = Callable[[], AbstractAsyncContextManager[tuple[Plan, Backend]]]


def simulated(plan: Plan, *, trace: bool = False) -> OpenBackend:
    """The simulator. `trace` keeps digests of all that every node does. Raises ConfigError for faults about hosts
    where the plan knows of none, and for ranks that are processes."""
    check_simulated(plan)

    @asynccontextmanager
    async def open_backend() -> AsyncIterator[tuple[Plan, Backend]]:
        yield plan, SimBackend(plan.topology, trace=trace)

    return open_backend


def launched(
    plan: Plan, run_dir: Path, *, pack: Pack = "none", trace: bool = False, cluster: "Cluster | None" = None
) -> OpenBackend:
    """Daemons of its own, on this host or on those of `cluster`, which end with the run, however that ends.

    Raises ConfigError for faults about hosts where the plan knows of none. Entering it raises ConfigError or
    ProcessFailedError as `Fabric.launch` does.
    """
    from orchestrator.fabric.launched import LaunchedFabric  # what launches, which virtual time does without
    from orchestrator.runs.udp_backend import UdpBackend

    _check_hosts(plan)

    @asynccontextmanager
    async def open_backend() -> AsyncIterator[tuple[Plan, Backend]]:
        async with LaunchedFabric.launch(
            plan.topology, run_dir, pack=pack, trace=trace, limit_ns=0, cluster=cluster
        ) as fabric:
            backend = UdpBackend(fabric, 0, broken=fabric.broken, workers=fabric.workers)
            try:
                yield plan, backend
            finally:
                await backend.close()

    return open_backend


def check_simulated(plan: Plan) -> None:
    """Raises ConfigError for what virtual time does not have: hosts, and ranks that are processes."""
    _check_hosts(plan)
    if (program := of_processes(plan.programs)) is not None:
        what = f"the ranks of {program.name} are processes, and live in wall time"
        raise ConfigError("virtual time", what, "mrcfabric run --backend udp")


def _check_hosts(plan: Plan) -> None:
    if plan.unplaced is not None:
        raise no_hosts(plan.unplaced_at or plan.unplaced.id)
