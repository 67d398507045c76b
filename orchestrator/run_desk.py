"""The agent's doors for whoever carries out a run: fabric time, programs, counters of all nodes, and deaths.

Owns the requests and their answers; `orchestrator.agent` serves them, `orchestrator.api.attached` asks. What they do is
`orchestrator.fabric`'s.
"""

from collections.abc import Mapping
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER
from nicd.programs.program import Program
from orchestrator.fabric import Fabric


class RunDesk:
    """Requests about time and programs of one fabric. All raise ConfigError and RefusedError."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    async def clock(self, _body: Mapping[str, Any]) -> dict[str, Any]:
        """`orchestrator.api.readings.ClockReading`, as data."""
        return (await self._fabric.clock())._asdict()

    async def limit(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`at_ns` (none: time goes on for good), `owner`."""
        at_ns, owner = _instant(body, "at_ns"), _owner(body)
        return {"at_ns": await self._fabric.limit(at_ns, owner)}

    async def load(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`program`, and `at_ns` at which the NICs take it (none: at once)."""
        given = body.get("program")
        if not isinstance(given, dict):
            raise ConfigError("program", "is no table")
        program, at_ns = Program.of(given), _instant(body, "at_ns")
        await self._fabric.load(program, at_ns)
        return {}

    async def counters(self, body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """`nodes`: a list of names; none: all that live."""
        nodes = body.get("nodes")
        if nodes is not None and not (isinstance(nodes, list) and all(isinstance(node, str) for node in nodes)):
            raise ConfigError("nodes", "is no list of names")
        return await self._fabric.counters(nodes)

    async def deaths(self, _body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """`orchestrator.api.readings.Death`, as data."""
        return [death._asdict() for death in await self._fabric.deaths()]


def _instant(body: Mapping[str, Any], key: str) -> int | None:
    value = body.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < NEVER):
        raise ConfigError(key, f"{value!r} is no instant", "nanoseconds of fabric time, from 0")
    return value


def _owner(body: Mapping[str, Any]) -> str:
    owner = body.get("owner", "")
    if not isinstance(owner, str):
        raise ConfigError("owner", f"{owner!r} is no text")
    return owner
