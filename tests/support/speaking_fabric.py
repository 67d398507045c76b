"""A plane of switches that route for themselves, from a topology, in the simulator, with NICs that send and count.

A NIC sends one packet per flow and period at fixed instants, and remembers what comes; it has no transport.
"""

from collections.abc import Sequence
from typing import Any

from mrcfabric.impairment import Impairment
from mrcfabric.node import Input, Node, Rank, Transmit
from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.commands import SetImpairment
from switchd.core.switch import Switch
from tests.support.roce_frames import number_of, roce


class Nic:
    """A node that sends by its timetable."""

    def __init__(self, name: str, delay_ns: int) -> None:
        self.name = name
        self.now_ns = 0
        self.plan: list[tuple[Instant, bytearray]] = []
        """In time order."""
        self.heard: list[tuple[Instant, int]] = []
        """(instant, number) of what has come."""
        self._delay_ns = delay_ns

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """`Node.advance`."""
        self.heard += ((one[0], number_of(one[4])) for one in inputs if one[1] == Rank.FRAME)
        out: list[Transmit] = []
        while self.plan and self.plan[0][0] <= until:
            at_ns, packet = self.plan.pop(0)
            out.append((0, at_ns + self._delay_ns, packet))
        self.now_ns = until
        return out

    def next_timeout(self) -> Instant | None:
        """`Node.next_timeout`."""
        return self.plan[0][0] if self.plan else None

    def drain_events(self) -> list[Any]:
        """`Node.drain_events`."""
        return []

    def counters(self) -> dict[str, Any]:
        """`Node.counters`."""
        return {}


class SpeakingFabric:
    """One plane."""

    def __init__(self, t0s: int, t1s: int, below: int, **switch: Any) -> None:
        self.topology = Topology(
            planes=1, t0_per_plane=t0s, t1_per_plane=t1s, nics_per_t0=below, evs_per_qp=8, reserve_evs_per_qp=0,
            switch={"forwarding": "ecmp", "routing": "bgp", **switch},
        )  # fmt: skip
        topology = self.topology
        self.switches: dict[str, Switch] = {
            name: build_switch(switch_config(topology, name)) for name in topology.switch_names()
        }
        names = [name for name in topology.node_names() if name not in self.switches]
        self.nics = [Nic(name, topology.ports(name)[0].delay_ns) for name in names]
        nodes: dict[str, Node] = {**self.switches, **{nic.name: nic for nic in self.nics}}
        links = {(name, end.port): (end.peer, end.peer_port) for name in nodes for end in topology.ports(name)}
        self.events: list[tuple[str, Any]] = []
        self.sim = Simulator(
            nodes, links, window_ns=topology.link_delay_ns, keep=1_000_000,
            on_events=lambda name, events: self.events.extend((name, event) for event in events),
        )  # fmt: skip
        self._tokens = 0

    def send(
        self, source: int, destination: int, sports: Sequence[int], begin_ns: int, end_ns: int, period_ns: int
    ) -> list[int]:
        """Send a packet of each flow in each period; returns the instants. A packet's number is instant and port."""
        instants = list(range(begin_ns, end_ns, period_ns))
        for at_ns in instants:
            for sport in sports:
                packet = roce(source, destination, sport, size=100, number=at_ns << 16 | sport)
                self.nics[source].plan.append((at_ns, packet))
        # The simulator asks a node again for its next instant when something comes to it.
        self.sim.command(self.nics[source].name, begin_ns, None)
        return instants

    def cut(self, a: str, b: str, at_ns: Instant, *, up: bool = False) -> None:
        """Cut a cable, or mend it: both ends lose their carrier at that instant."""
        for one, other in ((a, b), (b, a)):
            port = next(end.port for end in self.topology.ports(one) if end.peer == other)
            self._tokens += 1
            self.sim.command(one, at_ns, SetImpairment(self._tokens, port, Impairment(up=up)))

    def port(self, a: str, b: str) -> int:
        """The port of a that leads to b."""
        return next(end.port for end in self.topology.ports(a) if end.peer == b)

    def told(self, name: str, kind: type) -> list[Any]:
        """What a switch has told of this kind."""
        return [event for one, event in self.events if one == name and isinstance(event, kind)]
