"""The backend in virtual time: runs the cores in the simulator and answers for their daemons.

Owns what a run needs and a daemon adds to its core: the ring of noteworthy events and the answers to ops.
`orchestrator.sim.fabric` has the cores, their links and their faults.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mrcfabric.daemon import EVENTS_KEPT, EVENTS_PER_ANSWER_MAX, Daemon
from mrcfabric.errors import RefusedError
from mrcfabric.event_ring import EventRing
from mrcfabric.node import Node
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.daemon import NicDaemon
from nicd.programs.hosted_nic import HostedNic
from nicd.programs.program import Program
from orchestrator.faults.fault import Fault
from orchestrator.measures import sums
from orchestrator.scenario.plan import Order
from orchestrator.sim.fabric import SimulatedFabric

SLICE_HOPS = 50
"""After this many hops the simulator yields, so that the program can handle signals and update the screen."""


class _Life(NamedTuple):
    """One incarnation of a node."""

    core: Node
    number: int
    ring: EventRing


class SimBackend:
    """A backend with a fabric of its own, which starts at instant 0."""

    kind = "sim"

    def __init__(self, topology: Topology, *, trace: bool = False) -> None:
        """`trace` keeps a digest of everything that each node does."""
        self.topology = topology
        self.idle = False
        self.fabric = SimulatedFabric(topology, keep=0 if trace else None, on_events=self._heard)
        self._nics = frozenset(topology.nic_names())
        self._lives = {
            name: _Life(self.fabric.simulator.node(name), 0, EventRing(EVENTS_KEPT)) for name in topology.node_names()
        }
        self._refusals: list[str] = []

    @property
    def now_ns(self) -> Instant:
        return self.fabric.now_ns

    async def run_until(self, at_ns: Instant) -> None:
        slice_ns = SLICE_HOPS * self.topology.link_delay_ns
        while self.fabric.now_ns < at_ns:
            self.fabric.run(min(self.fabric.now_ns + slice_ns, at_ns))
            await asyncio.sleep(0)
        self.idle = self.fabric.simulator.next_due() is None

    async def load(self, programs: Sequence[Program]) -> None:
        for place, program in enumerate(programs):
            for index in program.ranks:
                args = {"program": program.settings()}
                self.fabric.command(self.topology.node_name(index), "run_program", args, self.now_ns + 1 + place)
        self._refusals.clear()
        await self.run_until(self.now_ns + len(programs))
        if self._refusals:
            raise RefusedError(self._refusals[0])

    async def stop(self, program: Program, nics: Sequence[str]) -> None:
        for nic in nics:
            self.fabric.command(nic, "stop_program", {"name": program.name}, self.now_ns + 1)
        self._refusals.clear()
        await self.run_until(self.now_ns + 1)
        if self._refusals:
            raise RefusedError(self._refusals[0])

    def nothing_to_come(self) -> None:
        """Every program in virtual time has an end of its own."""

    async def order(self, orders: Sequence[Order]) -> None:
        for place, one in enumerate(orders):
            self.fabric.command(one.node, one.op, dict(one.args), self.now_ns + 1 + place)
        self._refusals.clear()
        await self.run_until(self.now_ns + len(orders))
        if self._refusals:
            raise RefusedError(self._refusals[0])

    async def inject(self, fault: Fault) -> None:
        self.fabric.inject(fault)

    async def counters(self, nodes: Sequence[str]) -> dict[str, dict[str, Any]]:
        return {
            node: {
                "core": self.fabric.counters(node),
                "process": {"now_ns": self.now_ns, "incarnation": self._life(node).number},
            }
            for node in nodes
        }

    async def ask(self, node: str, op: str, args: Mapping[str, Any] | None = None) -> Any:
        return _ANSWERS[op](self, node, dict(args or {}))

    async def fidelity(self) -> dict[str, Any]:
        """As for daemons; in virtual time no frame is late or lost."""
        time = {"dilation_nominal": None, "dilation_effective": None, "fabric_ns": self.now_ns, "run_wall_s": None}
        return sums.fidelity((), time) | {"frames": self.fabric.simulator.frames}

    async def host_pairs(self) -> list[dict[str, Any]]:
        """As `Backend.host_pairs`."""
        return []

    async def confirm(self) -> None:
        """As `Backend.confirm`."""

    def faults(self) -> Sequence[Fault]:
        return self.fabric.faults()

    # What a daemon would keep and answer.

    def nic(self, node: str) -> HostedNic:
        """The core of a living NIC."""
        core = self.fabric.simulator.node(node)
        assert isinstance(core, HostedNic)
        return core

    def _heard(self, node: str, events: list[Any]) -> None:
        noteworthy = NicDaemon.noteworthy if node in self._nics else Daemon.noteworthy
        self._life(node).ring.add([event for event in events if noteworthy(event)])
        self._refusals += [f"{node}: {event.error}" for event in events if getattr(event, "error", None) is not None]

    def _life(self, node: str) -> "_Life":
        """What is kept of a node's present life. A node that has returned starts with nothing from its former life."""
        life, core = self._lives[node], self.fabric.simulator.node(node)
        if core is not life.core:
            life = self._lives[node] = _Life(core, life.number + 1, EventRing(EVENTS_KEPT))
        return life

    def _bins(self, node: str, args: dict[str, Any]) -> Any:
        return self.nic(node).bins(args.get("since", 0))

    def _events(self, node: str, args: dict[str, Any]) -> Any:
        return self._life(node).ring.after(args.get("since", 0), args.get("limit", EVENTS_PER_ANSWER_MAX))

    def _trace(self, node: str, _args: dict[str, Any]) -> Any:
        return self.fabric.traces(node)[-1].summary()

    def _link_table(self, node: str, _args: dict[str, Any]) -> Any:
        return self.nic(node).link_table()

    def _denied_paths(self, node: str, _args: dict[str, Any]) -> Any:
        return self.nic(node).denied_paths()

    def _programs(self, node: str, _args: dict[str, Any]) -> Any:
        return self.nic(node).host.records()

    def _progress(self, node: str, _args: dict[str, Any]) -> Any:
        return self.nic(node).host.progress()


_ANSWERS: Mapping[str, Callable[[SimBackend, str, dict[str, Any]], Any]] = {
    "bins": SimBackend._bins,
    "events": SimBackend._events,
    "trace": SimBackend._trace,
    "programs": SimBackend._programs,
    "progress": SimBackend._progress,
    "link_table": SimBackend._link_table,
    "denied_paths": SimBackend._denied_paths,
}
