"""The agent's requests for those who carry out a run: fabric time, programs, counters of all nodes, and deaths.

Owns the requests and their answers, and who owns which program: a program with an owner ends with the owner's lease.
`orchestrator.agent.agent` serves them, `orchestrator.client.agent_fabric` sends them, and `orchestrator.fabric` carries
them out.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from mrcfabric.errors import ConfigError, RefusedError
from nicd.programs.program import PROGRAMS_MAX, Program
from orchestrator.agent.faults import FaultRequests
from orchestrator.client import bodies
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.fabric.program_loading import NAME_TAKEN

OVER_KEPT: Final = 4 * PROGRAMS_MAX
"""How many programs that were stopped are remembered, so that answers of NICs from before do not bring them back."""


class RunRequests:
    """Requests about time and programs of one fabric. Each raises ConfigError and RefusedError."""

    def __init__(self, fabric: LaunchedFabric, faults: FaultRequests) -> None:
        """`faults` knows the leases."""
        self._fabric = fabric
        self._leases = faults.leases
        self._since_s: float | None = None
        """Since when an owner controls time, monotonic."""
        self._owned: dict[str, tuple[str, Program]] = {}
        """Name of a program -> its owner, and the program."""
        self._over: OrderedDict[str, None] = OrderedDict()
        """Names of programs that had an owner and were stopped, or are being stopped, with it."""

    async def clock(self, _body: Mapping[str, Any]) -> dict[str, Any]:
        """`orchestrator.fabric.readings.ClockReading`, as data."""
        return (await self._fabric.clock())._asdict()

    async def limit(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Set the limit to `at_ns` (None: time goes on for good) for `owner`, who needs a lease to stop time."""
        at_ns, owner = bodies.whole(body, "at_ns"), bodies.text(body, "owner", "")
        if at_ns is not None:
            self._leases.require(owner, "fabric time would stand still")
        bound_ns = await self._fabric.limit(at_ns, owner)
        if at_ns is None or self._since_s is None:
            self._since_s = None if at_ns is None else time.monotonic()
        return {"at_ns": bound_ns}

    def holder(self) -> dict[str, Any] | None:
        """Who controls fabric time: `Held.record`, for how long (`held_s`), and the limit (`until_ns`); None:
        nobody."""
        owner = self._fabric.limit_owner
        held = None if owner is None else self._leases.get(owner)
        if held is None or self._since_s is None:
            self._since_s = None
            return None
        limit_ns = self._fabric.time.limit_ns
        return {**held.record(), "held_s": round(time.monotonic() - self._since_s, 1), "until_ns": limit_ns}

    async def claim(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Claim `program`, which `owner` is about to give to its NICs: it is stopped when the owner's lease ends."""
        self._claim(Program.of(bodies.table(body, "program")), bodies.text(body, "owner", ""))
        return {}

    async def load(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Give `program` to its NICs at `at_ns` (None: at once). If there is an `owner`, the program is claimed."""
        program, at_ns = Program.of(bodies.table(body, "program")), bodies.whole(body, "at_ns")
        owner = bodies.text(body, "owner", "")
        if owner:
            self._claim(program, owner)
        else:
            self._over.pop(program.name, None)
        try:
            await self._fabric.load(program, at_ns)
        except (ConfigError, RefusedError):
            if owner:
                self._owned.pop(program.name, None)  # no NIC has it
            raise
        return {}

    def _claim(self, program: Program, owner: str) -> None:
        self._leases.require(owner, "its programs would go on")
        if program.name in self._owned:
            raise RefusedError(f"program {program.name} of {self._owned[program.name][0]} {NAME_TAKEN}")
        if len(self._owned) >= PROGRAMS_MAX:
            raise RefusedError(f"{PROGRAMS_MAX} programs have owners")
        self._owned[program.name] = owner, program
        self._over.pop(program.name, None)

    def owners(self) -> dict[str, str]:
        """Program -> its owner, for programs that end with an owner."""
        return {name: owner for name, (owner, _) in self._owned.items()}

    def over(self, name: str) -> bool:
        """Whether a program has ended with its owner, also while its NICs are still being told."""
        owned = self._owned.get(name)
        return name in self._over if owned is None else self._leases.get(owned[0]) is None

    def _end(self, name: str) -> None:
        """A program has no owner any more, and is over."""
        self._owned.pop(name, None)
        self._over[name] = None
        while len(self._over) > OVER_KEPT:
            self._over.popitem(last=False)

    async def stop_work(self, body: Mapping[str, Any]) -> dict[str, str]:
        """Stop `program`, which `owner` has claimed; returns NIC -> error where that failed.

        One that is over already, perhaps by a request whose answer nobody awaited, has nothing to stop.
        """
        name, owner = Program.of(bodies.table(body, "program")).name, bodies.text(body, "owner", "")
        whose, program = self._owned.get(name, ("", None))
        if program is None and name in self._over:
            return {}
        if program is None or whose != owner:
            raise RefusedError(f"{owner or 'nobody'} has no program {name}")
        left = await self._fabric.stop_work(program)
        self._end(name)
        if left:
            self._over.pop(name, None)  # it goes on there
        return left

    async def stop_work_of(self, owner: str) -> None:
        """Stop all programs of an owner that has gone. The journal notes those that cannot be stopped."""
        programs = [program for whose, program in self._owned.values() if whose == owner]
        for program in programs:
            self._end(program.name)
        for program in programs:
            for nic, why in (await self._fabric.stop_work(program)).items():
                self._over.pop(program.name, None)  # it goes on there
                self._fabric.journal.note("unstopped", self._fabric.now_ns(), nic=nic, program=program.name, why=why)

    async def counters(self, body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The counters of `nodes`, a list of names; without it, of all living nodes."""
        nodes = bodies.texts(body, "nodes")
        return await self._fabric.counters(nodes)

    async def glances(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`orchestrator.fabric.polling.Glances` as data, of `nodes` as for `counters`."""
        return (await self._fabric.glances(bodies.texts(body, "nodes"))).record()

    async def fidelity(self, _body: Mapping[str, Any]) -> dict[str, Any]:
        """`orchestrator.measures.sums.fidelity`, over all lives of all nodes."""
        return await self._fabric.fidelity()

    async def totals(self, _body: Mapping[str, Any]) -> dict[str, int]:
        """`orchestrator.measures.sums.totals`, over all lives of all nodes."""
        return await self._fabric.totals()

    async def untold(self, _body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """`orchestrator.fabric.readings.Untold`, as data."""
        return [one._asdict() for one in await self._fabric.untold()]

    async def host_pairs(self, _body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """`orchestrator.hosts.clock.host_pairs`."""
        return await self._fabric.host_pairs()

    async def deaths(self, _body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """`orchestrator.fabric.readings.Death`, as data."""
        return [death._asdict() for death in await self._fabric.deaths()]
