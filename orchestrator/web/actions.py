"""What a page may do to parts of a fabric: break one with a kind of fault, heal what is broken.

Owns the bodies of these requests, and finds the faults of a part by its name. The faults belong to the process that
serves the page (`Verbs.owner`), and end with it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from orchestrator.fabric.verbs import Verbs
from orchestrator.faults.checks import figures_of
from orchestrator.faults.fault import Figure
from orchestrator.faults.kinds import KINDS, nearest_kind

TARGETS_MAX = 256


class _Asked(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    targets: list[str]
    figures: dict[str, Figure] = {}
    for_ns: int | None = None


async def add(fabric: Verbs, body: bytes) -> dict[str, Any]:
    """Break what the body of POST /api/faults names; returns the fault's record. Raises ConfigError, RefusedError."""
    try:
        asked = msgspec.json.decode(body, type=_Asked)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ConfigError("fault", f"not understood: {error}") from None
    if asked.kind not in KINDS:
        raise ConfigError("kind", f"{asked.kind!r} is no kind of fault", nearest_kind(asked.kind))
    if not 0 < len(asked.targets) <= TARGETS_MAX:
        raise ConfigError("targets", f"{len(asked.targets)} names", f"1 to {TARGETS_MAX}")
    if asked.for_ns is not None and asked.for_ns <= 0:
        raise ConfigError("for_ns", f"{asked.for_ns} is no length", "nanoseconds of fabric time; none: until healed")
    figures = figures_of(fabric.topology, asked.kind, asked.figures)
    fault = await fabric.add_fault(asked.kind, *asked.targets, for_ns=asked.for_ns, figures=figures)
    return fault.record()


async def heal(fabric: Verbs, fault_id: str) -> list[str]:
    """Heal one fault; returns its id. Raises RefusedError when there is no such fault or it is over."""
    await fabric.heal(fault_id)
    return [fault_id]


async def heal_at(fabric: Verbs, target: str) -> list[str]:
    """Heal every fault that has this part among its targets; returns their ids. Raises RefusedError."""
    spelled = set(_spellings(fabric.topology, target))
    faults = [fault for fault in await fabric.live_faults() if spelled & set(fault.targets)]
    return [healed for fault in faults for healed in await _healed(fabric, fault.id)]


async def _healed(fabric: Verbs, fault_id: str) -> list[str]:
    try:
        return await heal(fabric, fault_id)
    except RefusedError:
        if any(fault.id == fault_id for fault in await fabric.live_faults()):
            raise
        return []  # another request healed it first


def _spellings(topology: Topology, target: str) -> Iterator[str]:
    yield target
    if "~" in target:
        link = topology.parse_link(target)
        yield from (link.name, f"{link.a}>{link.b}", f"{link.b}>{link.a}")
