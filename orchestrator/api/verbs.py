"""What a script says to a fabric, launched here or running elsewhere: find parts, break them, give work, wait, read.

Owns the verbs that are made of a fabric's own ways of asking and telling, which `orchestrator.fabric.Fabric` and
`orchestrator.api.attached.AttachedFabric` have each in their way.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from mrcfabric.units import Instant
from nicd.programs.program import Program
from orchestrator.api.finding import Finding
from orchestrator.api.readings import ClockReading, Death
from orchestrator.roster import CALL_WALL_S


class Verbs(Finding, ABC):
    """A fabric as scripts see it."""

    # What a fabric can do by itself.

    @abstractmethod
    async def call(
        self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float = CALL_WALL_S
    ) -> Any:
        """The answer of a node's daemon to an op of its control channel."""

    @abstractmethod
    async def counters(self, nodes: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
        """What these nodes count (None: all), those that are down left out: plain numbers in tables."""

    @abstractmethod
    async def metrics(self, node: str) -> str:
        """What a node counts, as Prometheus text (docs/METRICS.md)."""

    @abstractmethod
    async def fidelity(self) -> dict[str, Any]:
        """How faithful the emulation has been so far (`orchestrator.sums.fidelity`)."""

    @abstractmethod
    async def clock(self) -> ClockReading:
        """What time it is, how far it may go, and whether anything is pending."""

    @abstractmethod
    async def limit(self, at_ns: Instant | None, owner: str = "") -> Instant | None:
        """Let everything up to and including `at_ns` happen and then stand still; None: let time go on for good."""

    @abstractmethod
    async def load(self, program: Program, at_ns: Instant | None = None) -> None:
        """Give every NIC of a program its part."""

    @abstractmethod
    async def deaths(self) -> list[Death]:
        """Daemons that ended though nobody had asked for it."""
