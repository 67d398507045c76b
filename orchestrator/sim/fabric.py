"""A fabric in virtual time: the cores of the daemons and the agent's commands, without processes and sockets.

It does in the simulator what `orchestrator.fabric.Fabric` does with daemons on real UDP: takes commands by their names,
faults from the same `FaultTable`, and nodes that die and return. A scripted workload gives the same trace for each node
in both.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from mrcfabric.choice import Choice
from mrcfabric.errors import RefusedError
from mrcfabric.node import Node
from mrcfabric.sim.simulator import Simulator
from mrcfabric.sim.trace import Trace
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire_settings import code_points, wire_options
from mrcfabric.witness import STATEMENTS_MAX, Witness
from nicd.compose import nic_config
from nicd.daemon import NicDaemon
from nicd.programs.hosted_nic import HostedNic
from orchestrator.faults.fault import Fault
from orchestrator.faults.lives import Life
from orchestrator.faults.table import FaultTable
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.switch import Switch
from switchd.daemon import SwitchDaemon


class SimulatedFabric:
    """All nodes of a topology in the simulator, from instant 0 on."""

    def __init__(
        self,
        topology: Topology,
        *,
        keep: int | None = None,
        on_events: Callable[[str, list[Any]], None] | None = None,
    ) -> None:
        """`keep` and `on_events` as for `Simulator`."""
        self.topology = topology
        self._table = FaultTable(topology)
        self._living: dict[str, Life] = {}
        """Node -> its present life, for nodes that faults have struck or changed."""
        self._told: dict[str, int] = {}
        self._tokens = 0
        self._choice: Choice | None = None
        self._witnesses: dict[str, list[Witness]] = {}
        nodes = {name: self._core(name, 0) for name in topology.node_names()}
        links = {(name, end.port): (end.peer, end.peer_port) for name in nodes for end in topology.ports(name)}
        self.simulator = Simulator(nodes, links, window_ns=topology.link_delay_ns, keep=keep, on_events=on_events)

    def _core(self, name: str, start_ns: Instant) -> Node:
        core: HostedNic | Switch
        if self.topology.parse_node(name).tier == "nic":
            core = HostedNic(nic_config(self.topology, name), start_ns)
        else:
            core = build_switch(switch_config(self.topology, name), start_ns)
        self._attend(name, core)
        return core

    @property
    def now_ns(self) -> Instant:
        """Everything up to and including this instant has happened."""
        return self.simulator.now_ns

    def run(self, until: Instant) -> None:
        """Let everything up to and including `until` happen."""
        self.simulator.run(until)

    def traces(self, node: str) -> list[Trace]:
        """The traces of a node, one for each incarnation, the latest last; empty without `keep`."""
        return self.simulator.traces(node)

    def counters(self, node: str) -> dict[str, Any]:
        """The counters of a living core; KeyError for a dead one."""
        return self.simulator.node(node).counters()

    def hears(self, node: str) -> bool:
        """Whether a node runs and its control channel is not cut."""
        return self.simulator.alive(node) and not self._table.control_cut(node, self.now_ns)

    def command(self, node: str, op: str, args: Mapping[str, Any], at_ns: Instant | None = None) -> None:
        """Give a node a command by its name, as its daemon takes it.

        Raises RefusedError for arguments that the daemon would refuse, and while its control channel is cut.
        """
        if self._table.control_cut(node, self.now_ns):
            raise RefusedError(f"{node} does not answer: its control channel is cut")
        self.simulator.command(node, at_ns, self._build(node, op, args))

    def _build(self, node: str, op: str, args: Mapping[str, Any]) -> Any:
        nic = self.topology.parse_node(node).tier == "nic"
        table = NicDaemon.commands if nic else SwitchDaemon.commands
        self._tokens += 1
        return table.build(op, args, self._tokens)

    # Following packets.

    def follow(self, choice: Choice | None) -> None:
        """Have every node note from now on what happens to the packets of a choice.

        None: stop, and forget all notes.
        """
        self._choice = choice
        self._witnesses.clear()
        for name in self.topology.node_names():
            if self.simulator.alive(name):
                self._attend(name, self.simulator.node(name))

    def statements(self, node: str) -> list[dict[str, Any]]:
        """Take what a node has noted in all its lives since the last call (`mrcfabric.witness`)."""
        found: list[dict[str, Any]] = []
        for witness in self._witnesses.get(node, ()):
            answer = witness.after(0, STATEMENTS_MAX)
            witness.after(answer["last"], 1)
            found += answer["statements"]
        return found

    def _attend(self, name: str, core: Node) -> None:
        assert isinstance(core, HostedNic | Switch)
        witness = None
        if self._choice is not None:
            witness = Witness(self._choice, code_points(self.topology), wire_options(self.topology))
            self._witnesses.setdefault(name, []).append(witness)
        core.set_witness(witness)

    # Breaking.

    def inject(self, fault: Fault) -> None:
        """Inject a fault whose windows lie in the future. Raises ConfigError, RefusedError."""
        self._bring_about(self._table.add(fault, self.now_ns))

    def heal(self, fault_id: str, at_ns: Instant | None = None) -> Fault | None:
        """End a fault at a future instant, by default the next; returns what is left of it. Raises RefusedError."""
        soon = at_ns is None
        at_ns = self.now_ns + 1 if at_ns is None else at_ns
        self._bring_about(self._table.heal(fault_id, at_ns, self.now_ns, soon=soon))
        return self._table.get(fault_id)

    def faults(self) -> list[Fault]:
        """Every injected fault that has not ended."""
        return self._table.faults(self.now_ns)

    def born(self, node: str, start_ns: Instant) -> list[tuple[Instant, Any]]:
        """The commands that a node is told when a life of it begins, at instants after its start."""
        life = self._table.life(node, start_ns)
        self._living[node] = life
        self._told[node] = len(life.script)
        return [(order.at_ns, self._build(order.node, order.op, order.args)) for order in life.script]

    def _bring_about(self, nodes: Iterable[str]) -> None:
        """Give living nodes their new commands, and plan deaths and returns again."""
        now_ns = self.now_ns
        for node in nodes:
            life = self._living.get(node) or self._living.setdefault(node, self._table.life(node, 0))
            if self.simulator.alive(node):
                for order in life.script[self._told.get(node, 0) :]:
                    built = self._build(order.node, order.op, order.args)
                    self.simulator.command(order.node, order.at_ns, built, mortal=True)
                self._told[node] = len(life.script)
            self._plan_lives(node, now_ns)

    def _plan_lives(self, node: str, now_ns: Instant) -> None:
        self.simulator.stay(node)
        life: Life | None = self._table.life(node, now_ns)
        while life is not None:
            if life.start_ns > now_ns:
                self.simulator.restart(
                    node, life.start_ns, partial(self._core, node), partial(self.born, node, life.start_ns)
                )
            if now_ns < life.end_ns < NEVER:
                self.simulator.crash(node, life.end_ns)
            life = self._table.next_life(node, life.start_ns)
