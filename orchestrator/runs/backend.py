"""What a run needs of a fabric: the one interface that real daemons and virtual time both have.

Fabric time stands still unless `run_until` is under way, so whatever is told between two calls is told in time and
in order, on both backends alike. Who does it: `orchestrator.runs.udp_backend` and `orchestrator.sim.backend`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.programs.program import Program
from orchestrator.faults.fault import Fault
from orchestrator.scenario.plan import Order


class BackendLostError(Exception):
    """A daemon, or the fabric as a whole, ended though nobody had asked for it. The text has the last log lines."""


class Backend(Protocol):
    """A fabric whose time is in the hands of a run. All methods may raise BackendLostError."""

    topology: Topology
    kind: str
    """`udp` or `sim`."""

    @property
    def now_ns(self) -> Instant:
        """Everything up to and including this instant has happened, everywhere."""
        ...

    @property
    def idle(self) -> bool:
        """When time last stood still, nothing was pending anywhere: left alone, nothing would ever happen again."""
        ...

    async def run_until(self, at_ns: Instant) -> None:
        """Let everything up to and including `at_ns` happen, then stand still."""
        ...

    async def load(self, programs: Sequence[Program]) -> None:
        """Give every NIC its part of every program, at the next instant, which is reached when this returns.

        Raises RefusedError with a NIC's reason, ConfigError.
        """
        ...

    async def stop(self, program: Program, nics: Sequence[str]) -> None:
        """Have these NICs end and forget their ranks of a program, all at the next instant, which is reached then.

        Their QPs and memory are gone. Raises RefusedError with a NIC's reason.
        """
        ...

    def nothing_to_come(self) -> None:
        """Called at every look at which nothing of the timetable is left: work without an end of its own may end."""
        ...

    async def order(self, orders: Sequence[Order]) -> None:
        """Have nodes carry out commands, one after the other; they have when this returns. Raises RefusedError."""
        ...

    async def inject(self, fault: Fault) -> None:
        """Have a fault happen; all its windows lie in the future. Raises ConfigError, RefusedError."""
        ...

    async def counters(self, nodes: Sequence[str]) -> Mapping[str, dict[str, Any]]:
        """What these nodes answer to `counters`; the caller asks only those that live and hear."""
        ...

    async def ask(self, node: str, op: str, args: Mapping[str, Any] | None = None) -> Any:
        """What a node that lives and hears answers to an op that only reads: `bins`, `programs`, `events`, `trace`."""
        ...

    async def fidelity(self) -> dict[str, Any]:
        """As `orchestrator.measures.sums.fidelity`; in virtual time always valid."""
        ...

    async def host_pairs(self) -> list[dict[str, Any]]:
        """As `orchestrator.fabric.verbs.Verbs.host_pairs`; in virtual time there are no hosts."""
        ...

    async def confirm(self) -> None:
        """Return when time has been in the run's hands until now, so that what was read is the run's."""
        ...

    def faults(self) -> Sequence[Fault]:
        """Every fault of this run that is not over, as it stands now."""
        ...
