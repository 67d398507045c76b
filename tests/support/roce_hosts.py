"""A fabric of RoCE switches with the simplest of hosts, in virtual time: who sends what, what arrived, who paused whom.

    fabric = HostFabric(Topology(planes=1, switch={"forwarding": "ecmp", "lossless": "pfc"}))
    fabric.flow(0, 5)                    # NIC 0 sends to NIC 5 at line rate, without end
    fabric.run(1_000_000)
    assert fabric.host(5).received[0, SPORT] > 0

A host has one port, in plane 0. It sends what its flows ask for, in turn, and obeys the pauses that it hears. There is
no transport: nothing is acknowledged, nothing is sent again. What a fabric must do is the tests'.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from mrcfabric.class_egress import ClassEgress
from mrcfabric.class_egress_config import CLASSES, ClassEgressConfig
from mrcfabric.naming import nic_name, nic_of_address, port_mac
from mrcfabric.node import Input, Node, Transmit
from mrcfabric.rng import Rng
from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.dscp import CE, dscp_of, ecn_of, traffic_class_of_dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import encode, parse
from mrcfabric.wire_settings import code_points
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.switch import Switch
from tests.support.roce_frames import DATA_DSCP, SIZE, roce, sport_of

SPORT: Final = 0xC000
_AHEAD: Final = 3
"""Packets of each flow that wait in the host's port."""


@dataclass(slots=True)
class Flow:
    """One stream of packets from a host."""

    destination: int
    sport: int
    dscp: int
    size: int
    start_ns: Instant
    left: int
    """Packets still to be offered."""
    sent: int = 0


class Heard(NamedTuple):
    """A PFC frame that came to a node."""

    at_ns: Instant
    node: str
    port: int
    cls: int
    quanta: int


class Host:
    """A node with one port, full of flows; see the module text."""

    def __init__(self, name: str, number: int, config: ClassEgressConfig, classes: bytes, heard: list[Heard]) -> None:
        self.name = name
        self.number = number
        self.now_ns: Instant = 0
        self.egress = ClassEgress(config, 0, Rng("host", name), self._departed)
        self.flows: list[Flow] = []
        self.received: Counter[tuple[int | None, int]] = Counter()
        """(source NIC, source port) -> bytes that came."""
        self.marked = 0
        self.arrivals: dict[tuple[int | None, int], list[Instant]] = defaultdict(list)
        self.orders: list[tuple[Instant, ControlFrame]] = []
        """Control frames to send, in order of time."""
        self.obeys = True
        self._classes = classes
        self._heard = heard
        self._refill: list[int] = []

    def order(self, at_ns: Instant, cls: int, quanta: int) -> None:
        """A pause to send at this instant."""
        self.orders.append((at_ns, encode(port_mac(self.name, 0), {cls: quanta})))
        self.orders.sort(key=lambda order: order[0])

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """Arrivals, starts of flows, orders and departures, in order of time."""
        out: list[Transmit] = []
        for entry in map(Input._make, inputs):
            self._through(entry.at_ns - 1, out)
            self._take(entry, out)
        self._through(until, out)
        self.now_ns = until
        return out

    def next_timeout(self) -> Instant | None:
        """The next of what happens without input."""
        found = min(self._next_start(), self.egress.next_departure_ns, self._next_order())
        return None if found == NEVER else found

    def drain_events(self) -> list[Any]:
        return []

    def counters(self) -> dict[str, Any]:
        return self.egress.counters(self.now_ns)

    def _next_start(self) -> Instant:
        return min((flow.start_ns for flow in self.flows if flow.start_ns > self.now_ns), default=NEVER)

    def _next_order(self) -> Instant:
        return self.orders[0][0] if self.orders else NEVER

    def _take(self, entry: Input, out: list[Transmit]) -> None:
        packet = entry.body
        if isinstance(packet, ControlFrame):
            pfc = parse(packet)
            assert pfc is not None
            for cls in range(CLASSES):
                if pfc.enabled >> cls & 1:
                    self._heard.append(Heard(entry.at_ns, self.name, 0, cls, pfc.quanta[cls]))
                    until = entry.at_ns + self.egress.config.quanta_ns(pfc.quanta[cls])
                    if self.obeys:
                        self.egress.pause(entry.at_ns, cls, until, out)
            return
        source = nic_of_address(bytes(packet[8:24])), sport_of(packet)
        self.received[source] += len(packet)
        self.arrivals[source].append(entry.at_ns)
        self.marked += ecn_of(packet) == CE

    def _through(self, until: Instant, out: list[Transmit]) -> None:
        while (at_ns := self.next_timeout()) is not None and at_ns <= until:
            while self.orders and self.orders[0][0] == at_ns:
                self.egress.send_control(at_ns, self.orders.pop(0)[1], out)
            for number, flow in enumerate(self.flows):
                if flow.start_ns == at_ns:
                    self._refill += [number] * _AHEAD
            self._offer(at_ns, out)
            self.egress.run(at_ns, out)
            self._offer(at_ns, out)
            self.now_ns = at_ns

    def _offer(self, at_ns: Instant, out: list[Transmit]) -> None:
        """One packet for each that has left."""
        numbers, self._refill = self._refill, []
        for number in numbers:
            flow = self.flows[number]
            if flow.left:
                flow.left -= 1
                flow.sent += 1
                packet = roce(
                    self.number, flow.destination, flow.sport, dscp=flow.dscp, size=flow.size, number=flow.sent
                )
                assert self.egress.offer(at_ns, packet, self._classes[dscp_of(packet)], out, number)

    def _departed(self, _at_ns: Instant, number: int, _size: int) -> None:
        self._refill.append(number)


class _Listening:
    """A switch whose control frames are noted as they reach their peers."""

    def __init__(self, core: Switch, peers: Mapping[int, tuple[str, int]], heard: list[Heard]) -> None:
        self.core = core
        self.name = core.name
        self._peers = peers
        self._heard = heard

    @property
    def now_ns(self) -> Instant:
        return self.core.now_ns

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """That of the switch."""
        found = self.core.advance(inputs, until)
        for port, arrival_ns, packet in found:
            if isinstance(packet, ControlFrame) and not self._peers[port][0].startswith("h"):
                pfc = parse(packet)
                assert pfc is not None
                cls = pfc.enabled.bit_length() - 1
                self._heard.append(Heard(arrival_ns, *self._peers[port], cls, pfc.quanta[cls]))
        return found

    def next_timeout(self) -> Instant | None:
        return self.core.next_timeout()

    def drain_events(self) -> list[Any]:
        return self.core.drain_events()

    def counters(self) -> dict[str, Any]:
        return self.core.counters()


@dataclass
class HostFabric:
    """All switches of plane 0 of a topology, and a host for each NIC."""

    topology: Topology
    heard: list[Heard] = field(default_factory=list)
    """Every PFC frame, by when it reached its receiver."""

    def __post_init__(self) -> None:
        topology = self.topology
        classes = traffic_class_of_dscp(code_points(topology))
        self.hosts: list[Host] = []
        self.switches: dict[str, Switch] = {}
        nodes: dict[str, Node] = {}
        for number in range(topology.nics):
            name = nic_name(number)
            end = topology.ports(name)[0]
            config = ClassEgressConfig(
                rate_bps=end.rate_bps, delay_ns=end.delay_ns, data_bytes_max=1 << 30, control_bytes_max=1 << 30
            )
            self.hosts.append(Host(name, number, config, classes, self.heard))
            nodes[name] = self.hosts[-1]
        for name in topology.switch_names():
            if topology.parse_node(name).plane == 0:
                self.switches[name] = build_switch(switch_config(topology, name))
                peers = {end.port: (end.peer, end.peer_port) for end in topology.ports(name)}
                nodes[name] = _Listening(self.switches[name], peers, self.heard)
        links = {
            (name, end.port): (end.peer, end.peer_port)
            for name in nodes for end in topology.ports(name) if end.peer in nodes
        }  # fmt: skip
        self.simulator = Simulator(nodes, links, window_ns=topology.link_delay_ns)

    def flow(
        self, source: int, destination: int, *, sport: int = SPORT, dscp: int = DATA_DSCP, size: int = SIZE,
        start_ns: Instant = 1_000, count: int = 1 << 60,
    ) -> Flow:  # fmt: skip
        """A flow from one NIC to another, at line rate from `start_ns` on."""
        flow = Flow(destination, sport, dscp, size, start_ns, count)
        self.hosts[source].flows.append(flow)
        self._wake(source)
        return flow

    def pause(self, number: int, *instants: Instant, cls: int = 3, quanta: int = 65_535) -> None:
        """Have a host ask its switch to pause a class at these instants."""
        for at_ns in instants:
            self.hosts[number].order(at_ns, cls, quanta)
        self._wake(number)

    def _wake(self, number: int) -> None:
        """A host has something new to do, of which no driver would know."""
        self.simulator._reschedule(self.simulator._sites[nic_name(number)])

    def host(self, number: int) -> Host:
        """The host in the place of a NIC."""
        return self.hosts[number]

    def run(self, until: Instant) -> None:
        """Everything up to and including `until`."""
        self.simulator.run(until)

    def rates(self, span_ns: Instant) -> dict[tuple[int, int, int], float]:
        """(source, source port, destination) -> share of the line, framing included, over the next `span_ns`."""
        before = [Counter(host.received) for host in self.hosts]
        self.run(self.simulator.now_ns + span_ns)
        found: dict[tuple[int, int, int], float] = {}
        for number, host in enumerate(self.hosts):
            for source, sport in host.received:
                assert source is not None
                got = host.received[source, sport] - before[number][source, sport]
                flow = next(f for f in self.hosts[source].flows if f.destination == number and f.sport == sport)
                wire = got * (flow.size + 38) / flow.size
                found[source, sport, number] = wire * 8e9 / self.topology.rate_bps / span_ns
        return found

    def drops(self) -> dict[str, int]:
        """Drops of all switches by reason."""
        found: Counter[str] = Counter()
        for switch in self.switches.values():
            found.update({reason: count for reason, count in switch.counters()["drops"].items() if count})
        return dict(found)
