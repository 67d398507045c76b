"""Faults of a running fabric: injected, listed, healed.

Owns what is in the table of faults (`orchestrator.faults.table`) and what the journal says of it. A fault is resolved
and checked once, here, for whoever injects it; `lifecycle` then brings the daemons in line with the table.
"""

from collections import Counter
from collections.abc import Sequence

from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from orchestrator.fabric.daemons import Daemons
from orchestrator.fabric.journal import Journal
from orchestrator.fabric.lifecycle import Lifecycle
from orchestrator.faults.checks import DEADLY
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
        """Faults by kind, deaths that nobody asked for left out."""
        self._topology = topology
        self._table = table
        self._host_map = host_map
        self._daemons = daemons
        self._lifecycle = lifecycle
        self._time = time
        self._journal = journal

    async def inject(self, fault: Fault) -> Fault:
        """Have a fault happen; returns it as it was taken, with the parts that its hosts come to, when all daemons
        concerned have been told. Raises ConfigError, RefusedError."""
        fault = self._host_map.settled(self._topology, fault)
        self._require_own_processes(fault)
        nodes = self._table.add(fault, self._time.page.fabric_front())
        self.injected[fault.kind] += 1
        until_ns = None if fault.end_ns == NEVER else fault.end_ns
        targets = " ".join(fault.targets[:TARGETS_NOTED])
        self._journal.note("fault", fault.start_ns, id=fault.id, fault=fault.kind, of=targets, until_ns=until_ns)
        await self._lifecycle.bring_in_line(nodes)
        return fault

    async def heal(self, fault_id: str, at_ns: Instant | None, why: str) -> Fault | None:
        """End a fault at an instant, by default soon; returns what is left of it. Raises RefusedError."""
        instant = self._time.soon_ns() if at_ns is None else at_ns
        fault = self._table.get(fault_id)
        if fault is not None:
            self._require_own_processes(fault)
        await self._lifecycle.bring_in_line(self._end(fault_id, instant, why))
        return self._table.get(fault_id)

    async def revive(self, nodes: Sequence[str], why: str) -> Instant | None:
        """Have those of these nodes live again, all from one instant on, that died though nobody had asked for it.

        Whole processes: who shares one is among them. Returns the instant, None when there is nobody to revive; raises
        ProcessFailedError and ConfigError when one does not start.
        """
        deaths = self._lifecycle.died_unasked(nodes)
        instant = self._time.soon_ns()
        concerned = {one for fault_id in deaths.values() for one in self._end(fault_id, instant, why)}
        begins_ns = self._lifecycle.begin_whole_processes(deaths)
        await self._lifecycle.bring_in_line(sorted(concerned, key=self._topology.node_index))
        return begins_ns

    def faults(self) -> list[Fault]:
        """Every fault that is not over."""
        return self._table.faults(self._time.page.fabric_front())

    def active(self) -> list[Fault]:
        """Those of them that bite."""
        return self._table.active(self._time.page.fabric_front())

    def _require_own_processes(self, fault: Fault) -> None:
        """Raises RefusedError for a node that is to die, or to return, and shares its process."""
        if fault.kind in DEADLY:
            for node in fault.struck:
                self._daemons.require_own_process(self._daemons.member(node))

    def _end(self, fault_id: str, instant: Instant, why: str) -> list[str]:
        """End a fault at an instant; the nodes concerned."""
        fault = self._table.get(fault_id)
        nodes = self._table.heal(fault_id, instant, self._time.page.fabric_front())
        assert fault is not None, "what is not there is refused"
        left = self._table.get(fault_id)
        if left is None or left.end_ns < fault.end_ns:  # else it ends by itself before
            self._journal.note("healed", instant, id=fault_id, fault=fault.kind, why=why)
        return nodes
