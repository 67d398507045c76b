"""A run on a fabric that runs already: its time taken in hand under a lease, its past left out of the report.

Owns what is different there: the plan is made for the fabric that is found, beginning at an instant that is still to
come; programs get numbers and names that its NICs do not know yet; what was broken before stays broken. When the owner
goes, however it goes, the agent heals what it broke, lets time go on (`orchestrator.agent.faults`) and stops its
programs (`orchestrator.agent.runs`).
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.client.agent_fabric import AgentFabric
from orchestrator.runs.backend import Backend, BackendLostError
from orchestrator.runs.backends import OpenBackend
from orchestrator.runs.udp_backend import Past, UdpBackend
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.process_kinds import of_processes
from orchestrator.scenario.resolve import BEGIN_RTTS, load


def attached(name: str, file: str, overrides: Sequence[str], *, seed: str | None = None) -> OpenBackend:
    """The running fabric of this name, or in this folder (with a `/` in it), and the plan of a scenario file for it.

    Entering it raises ConfigError when there is none, or when it is not the one the file means; RefusedError when its
    time is in other hands.
    """

    @asynccontextmanager
    async def open_backend() -> AsyncIterator[tuple[Plan, Backend]]:
        """Attach, take time in hand, and make the plan for what is found."""
        there = {"run_dir": Path(name)} if os.sep in name else {"name": name}
        async with AgentFabric.open(**there, owner=f"run-{os.getpid()}") as fabric:
            now_ns = await fabric.limit_soon()
            known = await _known_programs(fabric)
            plan = load(
                file,
                overrides,
                seed=seed,
                topology=fabric.topology,
                begin_ns=now_ns + BEGIN_RTTS * fabric.topology.base_rtt_ns(),
                programs_before=max(known.values(), default=-1) + 1,
                hosts=lambda _topology: fabric.host_map,
            )
            if plan.orders:
                raise ConfigError(
                    f"{file}: deny, ev_profiles", "changes NICs for good", "mrcfabric ev deny, or leave out --on"
                )
            if plan.mapper is not None:
                what = "leaves denials behind where the run does not come to its end"
                raise ConfigError(f"{file}: mapper", what, "mrcfabric mapper --deny, or leave out --on")
            if (program := of_processes(plan.programs)) is not None:
                what = f"the ranks of {program.name} are processes, and these need a fabric of the run's own"
                raise ConfigError(f"{file}: workload", what, "leave out --on")
            names = {program.name: _new_name(program.name, known) for program in plan.programs}
            for program in plan.programs:
                await fabric.claim(replace(program, name=names[program.name]))
            past = Past(tuple(await fabric.live_faults()), len(await fabric.deaths()), names)
            backend = UdpBackend(fabric, 0, fabric.owner, past)
            try:
                await backend.run_until(now_ns)
            except BackendLostError as error:
                raise RefusedError(str(error)) from None
            yield plan, backend

    return open_backend


async def _known_programs(fabric: Any) -> dict[str, int]:
    """Name -> number of every program that any NIC knows."""
    found: dict[str, int] = {}
    for nic in await fabric.counters(list(fabric.topology.nic_names())):
        for name, entry in (await fabric.call(nic, "progress")).items():
            found[name] = entry["number"]
    return found


def _new_name(name: str, known: dict[str, int]) -> str:
    number = 1
    while (new := name if number == 1 else f"{name}~{number}") in known:
        number += 1
    return new
