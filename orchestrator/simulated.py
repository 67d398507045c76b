"""The same fabric in virtual time: the cores of the daemons, the commands of the agent, no process and no socket.

What `orchestrator.fabric.Fabric` does with daemons on real UDP, this does in the simulator: commands by their names,
links and ports cut and healed by the same `FaultTable`, nodes that crash and return. A scripted workload gives the same
trace per node in both.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mrcfabric.node import Node
from mrcfabric.sim.simulator import Simulator
from mrcfabric.sim.trace import Trace
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.compose import nic_config
from nicd.daemon import NicDaemon
from nicd.programs.hosted_nic import HostedNic
from orchestrator.faults.table import FaultTable, Stamped
from switchd.compose import switch_config
from switchd.core.switch import Switch
from switchd.daemon import SwitchDaemon


class SimulatedFabric:
    """Every node of a topology in the simulator, from instant 0."""

    def __init__(
        self,
        topology: Topology,
        *,
        keep: int | None = None,
        on_events: Callable[[str, list[Any]], None] | None = None,
    ) -> None:
        """`keep` and `on_events` as for `Simulator`."""
        self.topology = topology
        self._faults = FaultTable(topology)
        self._tokens = 0
        nodes = {name: self._core(name, 0) for name in topology.node_names()}
        links = {(name, end.port): (end.peer, end.peer_port) for name in nodes for end in topology.ports(name)}
        self.simulator = Simulator(nodes, links, window_ns=topology.link_delay_ns, keep=keep, on_events=on_events)

    def _core(self, name: str, start_ns: Instant) -> Node:
        if self.topology.parse_node(name).tier == "nic":
            return HostedNic(nic_config(self.topology, name), start_ns)
        return Switch(switch_config(self.topology, name), start_ns)

    @property
    def now_ns(self) -> Instant:
        """Everything up to and including this instant has happened."""
        return self.simulator.now_ns

    def run(self, until: Instant) -> None:
        """Everything that happens up to and including `until`."""
        self.simulator.run(until)

    def traces(self, node: str) -> list[Trace]:
        """One per incarnation, the latest last; empty without `keep`."""
        return self.simulator.traces(node)

    def counters(self, node: str) -> dict[str, Any]:
        """The counters of a living core; KeyError for a dead one."""
        return self.simulator.node(node).counters()

    def command(self, node: str, op: str, args: Mapping[str, Any], at_ns: Instant | None = None) -> None:
        """A command by its name, as the daemon takes it. Raises RefusedError for arguments it would refuse."""
        nic = self.topology.parse_node(node).tier == "nic"
        table = NicDaemon.commands if nic else SwitchDaemon.commands
        self._tokens += 1
        self.simulator.command(node, at_ns, table.build(op, args, self._tokens))

    def link(self, name: str, at_ns: Instant, *, up: bool = True, loss_ppm: int = 0) -> None:
        """Cut, heal or degrade a cable at an instant."""
        self._carry_out(self._faults.set_link(name, at_ns, up=up, loss_ppm=loss_ppm))

    def nic_port(self, nic: str, plane: int, at_ns: Instant, *, up: bool) -> None:
        """Take a NIC's port down or up at an instant."""
        self._carry_out(self._faults.set_nic_port(nic, plane, at_ns, up=up))

    def crash(self, node: str, at_ns: Instant, restart_at_ns: Instant | None = None) -> None:
        """A node dies at an instant, and perhaps begins again at another."""
        self._carry_out(self._faults.set_node(node, at_ns, up=False))
        self.simulator.crash(node, at_ns)
        if restart_at_ns is not None:
            self.restart(node, restart_at_ns)

    def restart(self, node: str, at_ns: Instant) -> None:
        """A node that has died, or will have by then, begins again at an instant: it knows nothing of before."""
        self._carry_out(self._faults.set_node(node, at_ns, up=True))
        self.simulator.restart(node, at_ns, lambda start_ns: self._core(node, start_ns))
        self._carry_out(self._faults.state_for(node, at_ns))

    def _carry_out(self, commands: list[Stamped]) -> None:
        for command in commands:
            self.command(command.node, command.op, command.args, command.at_ns)
