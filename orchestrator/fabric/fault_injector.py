"""Injects, lists and heals the faults of a running fabric.

Owns what is in the table of faults (`orchestrator.faults.table`) and what the journal says about it. Every fault is
resolved and checked here, once, whether a command, a script or a run injects it. `lifecycle` then makes the daemons
follow the table.
"""

from collections import Counter
from collections.abc import Sequence

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from orchestrator.fabric import arguments
from orchestrator.fabric.daemons import Daemons
from orchestrator.fabric.journal import Journal
from orchestrator.fabric.lifecycle import Lifecycle
from orchestrator.faults.checks import check
from orchestrator.faults.fault import Fault
from orchestrator.faults.host_map import HostMap
from orchestrator.faults.table import FaultTable
from orchestrator.hosts.clock.timekeeper import Timekeeper

TARGETS_NOTED = 8


class FaultInjector:
    """The faults of one fabric."""

    def __init__(
        self,
        topology: Topology,
        table: FaultTable,
        host_map: HostMap,
        daemons: Daemons,
        lifecycle: Lifecycle,
        time: Timekeeper,
        journal: Journal,
    ) -> None:
        self.injected: Counter[str] = Counter()
        """How many faults of each kind were injected; deaths that nobody asked for do not count."""
        self._topology = topology
        self._table = table
        self._host_map = host_map
        self._daemons = daemons
        self._lifecycle = lifecycle
        self._time = time
        self._journal = journal

    async def inject(self, fault: Fault) -> Fault:
        """Inject a fault. Returns it with its host targets expanded, once all daemons concerned have been told.

        Who is cancelled while he waits has injected it all the same. Raises ConfigError, RefusedError.
        """
        if not isinstance(fault, Fault):
            raise ConfigError("fault", f"{fault!r} is none", "as orchestrator.faults.fault.once makes it")
        # A script may have put anything into it, and what is not whole nanoseconds would stop fabric time for good.
        fault = self._host_map.settled(self._topology, Fault.of(fault.record()))
        check(self._topology, fault)  # the table does, too, but one without windows has no start to hold time before
        return await self._lifecycle.whole(self._inject(fault))

    async def _inject(self, fault: Fault) -> Fault:
        with self._time.before(fault.start_ns):
            nodes = self._table.add(fault, self._time.front_ns())
            self.injected[fault.kind] += 1
            until_ns = None if fault.end_ns == NEVER else fault.end_ns
            targets = " ".join(fault.targets[:TARGETS_NOTED])
            self._journal.note("fault", fault.start_ns, id=fault.id, fault=fault.kind, of=targets, until_ns=until_ns)
            await self._lifecycle.bring_in_line(nodes)
        return fault

    async def heal(self, fault_id: str, at_ns: Instant | None, why: str) -> Fault | None:
        """End a fault at an instant, by default soon; then its id is free at once.

        Returns what is left of it. Raises RefusedError.
        """
        at_ns = None if at_ns is None else arguments.instant("at_ns", at_ns)
        return await self._lifecycle.whole(self._heal(arguments.text("fault_id", fault_id), at_ns, why))

    async def _heal(self, fault_id: str, at_ns: Instant | None, why: str) -> Fault | None:
        with self._time.before(at_ns) as instant:
            nodes = self._end(fault_id, instant, why, soon=at_ns is None)
            left = self._table.get(fault_id)  # before others are heard, who may give the id to another fault
            await self._lifecycle.bring_in_line(nodes)
        return left

    async def revive(self, nodes: Sequence[str], why: str) -> Instant | None:
        """Start those of these nodes again that died although nobody asked for it, all at one instant.

        Returns the instant, None when there is nothing to start. Raises ProcessFailedError and ConfigError when a node
        does not start.
        """
        return await self._lifecycle.whole(self._revive(nodes, why))

    async def _revive(self, nodes: Sequence[str], why: str) -> Instant | None:
        deaths = self._lifecycle.died_unasked(nodes)
        with self._time.before(None) as instant:
            concerned = {one for fault_id in deaths.values() for one in self._end(fault_id, instant, why, soon=True)}
            begins_ns = self._lifecycle.begin_again(deaths)
        await self._lifecycle.bring_in_line(sorted(concerned, key=self._topology.node_index))
        return begins_ns

    def faults(self) -> list[Fault]:
        """Every fault that has not ended."""
        return self._table.faults(self._time.front_ns())

    def active(self) -> list[Fault]:
        """Every fault that is in force now."""
        return self._table.active(self._time.front_ns())

    def _end(self, fault_id: str, instant: Instant, why: str, *, soon: bool) -> list[str]:
        """End a fault at an instant; returns the nodes concerned. `soon` as of `FaultTable.heal`."""
        fault = self._table.get(fault_id)
        nodes = self._table.heal(fault_id, instant, self._time.front_ns(), soon=soon)
        assert fault is not None, "what is not there is refused"
        left = self._table.get(fault_id)
        if left is None or left.end_ns < fault.end_ns:  # otherwise it ends by itself before `instant`
            self._journal.note("healed", instant, id=fault_id, fault=fault.kind, why=why)
        return nodes
