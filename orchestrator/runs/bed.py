"""What a run needs of a fabric: the one interface that real daemons and virtual time both have.

Fabric time stands still unless `run_until` is under way, so whatever is told between two calls is told in time and
in order, on both beds alike. Who does it: `orchestrator.runs.udp_bed` and `orchestrator.runs.sim_bed`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.programs.program import Program
from orchestrator.faults.fault import Fault


class BedLostError(Exception):
    """A daemon, or the fabric as a whole, ended though nobody had asked for it. The text has the last log lines."""


class Bed(Protocol):
    """A fabric whose time is in the hands of a run. All methods may raise BedLostError."""

    topology: Topology
    backend: str
    """`udp` or `sim`."""

    @property
    def now_ns(self) -> Instant:
        """Everything up to and including this instant has happened, everywhere."""
        ...

    @property
    def idle(self) -> bool:
        """Nothing is pending anywhere: without a command or a fault nothing will ever happen again."""
        ...

    async def run_until(self, at_ns: Instant) -> None:
        """Let everything up to and including `at_ns` happen, then stand still."""
        ...

    async def load(self, program: Program) -> None:
        """Give every NIC of a program its part. Raises RefusedError with the NIC's reason, ConfigError."""
        ...

    async def inject(self, fault: Fault) -> None:
        """Have a fault happen; all its windows lie in the future. Raises ConfigError, RefusedError."""
        ...

    async def heal(self, fault_id: str, at_ns: Instant) -> None:
        """End a fault at an instant still to come."""
        ...

    async def counters(self) -> Mapping[str, dict[str, Any]]:
        """What every living daemon answers to `counters`: `core`, `drive`, `process`."""
        ...

    async def ask(self, node: str, op: str, args: Mapping[str, Any] | None = None) -> Any:
        """What a daemon answers to an op that only reads: `bins`, `programs`, `events`, `ev_table`, `qp_table`, ..."""
        ...

    async def alive(self, node: str) -> bool:
        """Whether the node lives now."""
        ...

    async def fidelity(self) -> dict[str, Any]:
        """As `orchestrator.sums.fidelity`; in virtual time always valid."""
        ...

    async def digest(self) -> str:
        """One digest over the traces of all nodes in all their lives; "" when traces were not asked for."""
        ...

    def faults(self) -> Sequence[Fault]:
        """Every fault that was injected and is not over."""
        ...
