"""The agent's doors for whoever carries out a run: fabric time, programs, counters of all nodes, and deaths.

Owns the requests and their answers; `orchestrator.agent` serves them, `orchestrator.api.attached` asks. What they do is
`orchestrator.fabric`'s.
"""

from collections.abc import Mapping
from typing import Any

from nicd.programs.program import Program
from orchestrator import bodies
from orchestrator.fabric import Fabric
from orchestrator.fault_desk import FaultDesk


class RunDesk:
    """Requests about time and programs of one fabric. All raise ConfigError and RefusedError."""

    def __init__(self, fabric: Fabric, faults: FaultDesk) -> None:
        """`faults` knows who holds a lease."""
        self._fabric = fabric
        self._faults = faults

    async def clock(self, _body: Mapping[str, Any]) -> dict[str, Any]:
        """`orchestrator.api.readings.ClockReading`, as data."""
        return (await self._fabric.clock())._asdict()

    async def limit(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`at_ns` (none: time goes on for good), `owner`, who needs a lease to let time stand still."""
        at_ns, owner = bodies.whole(body, "at_ns"), bodies.text(body, "owner", "")
        if at_ns is not None:
            self._faults.require_lease(owner, "fabric time would stand still")
        return {"at_ns": await self._fabric.limit(at_ns, owner)}

    async def load(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`program`, and `at_ns` at which the NICs take it (none: at once)."""
        program, at_ns = Program.of(bodies.table(body, "program")), bodies.whole(body, "at_ns")
        await self._fabric.load(program, at_ns)
        return {}

    async def counters(self, body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """`nodes`: a list of names; none: all that live."""
        nodes = bodies.texts(body, "nodes")
        return await self._fabric.counters(nodes)

    async def deaths(self, _body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """`orchestrator.api.readings.Death`, as data."""
        return [death._asdict() for death in await self._fabric.deaths()]
