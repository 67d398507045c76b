"""InfiniBand switches with hosts that have no transport: they send as fast as credit lets them, and count."""

from collections import Counter, deque
from dataclasses import dataclass, replace
from typing import Any

from mrcfabric.credit_egress import CreditEgress
from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.node import Input, Transmit
from mrcfabric.rng import Rng
from mrcfabric.sim.simulator import Simulator
from mrcfabric.units import NEVER
from mrcfabric.wire.flow_control import parse
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import MANAGEMENT_VL, SLS, blocks_of, vcrc_ok
from mrcfabric.wire.lrh_rc import LrhDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_MIDDLE
from switchd.core.build import build_switch
from switchd.core.credited import CreditSwitch
from switchd.core.forwarding.lft import NO_PORT, LftConfig
from switchd.core.settings import SwitchConfig
from switchd.core.settings_credits import CreditConfig

SIZE = 4_126
PORT = CreditEgressConfig(rate_bps=100_000_000_000, delay_ns=500, blocks=(512, 512))
SL2VL = (0, 1) + (0,) * (SLS - 2)
"""Service level 1 travels on VL 1, all others on VL 0."""


@dataclass
class Flow:
    """Packets to one LID."""

    packet: bytes
    vl: int
    start_ns: int
    count: int
    gap_ns: int
    sent: int = 0
    next_ns: int = 0


class CreditHost:
    """A node with one port. `stopped`: it keeps what comes in its buffer."""

    def __init__(self, name: str, lid: int, config: CreditEgressConfig, start_ns: int = 0) -> None:
        self.name = name
        self.lid = lid
        self.now_ns = start_ns
        self.port = CreditEgress(config, 0, Rng(name))
        self.port.begin(start_ns + 1)
        self.flows: list[Flow] = []
        self.received: Counter[tuple[int, int]] = Counter()
        """By (SLID, SL): packets."""
        self.arrivals: dict[tuple[int, int], list[int]] = {}
        self.stopped = False
        self.overruns = 0
        self.vls: Counter[int] = Counter()

    def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
        """`Node.advance`."""
        out: list[Transmit] = []
        waiting = deque(inputs)
        while True:
            at_ns = min(waiting[0][0] if waiting else NEVER, self._due())
            if at_ns > until:
                break
            while waiting and waiting[0][0] == at_ns:
                self._receive(at_ns, waiting.popleft()[4], out)
            self.port.run(at_ns, out)
            self._fill(at_ns, out)
        self.now_ns = until
        return out

    def next_timeout(self) -> int | None:
        """`Node.next_timeout`."""
        due = self._due()
        return None if due == NEVER else due

    def drain_events(self) -> list[Any]:
        """Nothing."""
        return []

    def counters(self) -> dict[str, Any]:
        """Those of the port."""
        return self.port.counters(self.now_ns)

    def _due(self) -> int:
        starts = [max(flow.next_ns, self.now_ns + 1) for flow in self.flows if flow.count and self._room(flow)]
        return min([self.port.next_departure_ns, *starts])

    def _room(self, flow: Flow) -> bool:
        return self.port.queues.bytes[flow.vl] < 2 * SIZE

    def _fill(self, now: int, out: list[Transmit]) -> None:
        for flow in self.flows:
            while flow.count and flow.next_ns <= now and self._room(flow):
                self.port.offer(now, bytearray(flow.packet), flow.vl, out)
                flow.count -= 1
                flow.sent += 1
                flow.next_ns = now + flow.gap_ns
        # Flows take turns.
        self.flows.append(self.flows.pop(0)) if self.flows else None
        self.port.run(now, out)

    def _receive(self, now: int, packet: Any, out: list[Transmit]) -> None:
        if isinstance(packet, ControlFrame):
            said = parse(packet)
            assert said is not None
            self.port.heard(now, said, out)
            return
        vl, blocks = packet[0] >> 4, blocks_of(len(packet))
        if vl == MANAGEMENT_VL:
            return
        assert packet[2] << 8 | packet[3] == self.lid
        if not self.received:
            assert vcrc_ok(packet)
        key = packet[6] << 8 | packet[7], packet[1] >> 4
        self.received[key] += 1
        self.arrivals.setdefault(key, []).append(now)
        self.vls[vl] += 1
        if not self.port.taken(now, vl, blocks, out):
            self.overruns += 1
        elif not self.stopped:
            self.port.freed(now, vl, blocks, out)


class CreditFabric:
    """Leaves with hosts, and spines above them; LIDs count hosts from 1. A spine is chosen by destination."""

    def __init__(
        self, leaves: int, below: int, spines: int, port: CreditEgressConfig = PORT, *, switch_port: Any = None,
        **lft: Any,
    ) -> None:  # fmt: skip
        self.port = port
        self.below = below
        inner = port if switch_port is None else switch_port
        links: dict[tuple[str, int], tuple[str, int]] = {}
        nodes: dict[str, Any] = {}
        hosts = leaves * below
        for leaf in range(leaves):
            table = bytearray((NO_PORT,))
            for host in range(hosts):
                here, number = divmod(host, below)
                table.append(number if here == leaf else below + host % spines)
            up = tuple(range(below, below + spines))
            config = LftConfig(bytes(table), group=up, **lft)
            nodes[f"leaf{leaf}"] = self._switch(f"leaf{leaf}", below + spines, config, inner)
            for number in range(below):
                self._wire(links, (f"leaf{leaf}", number), (f"h{leaf * below + number}", 0))
            for spine in range(spines):
                self._wire(links, (f"leaf{leaf}", below + spine), (f"spine{spine}", leaf))
        for spine in range(spines):
            table = bytes((NO_PORT, *(host // below for host in range(hosts))))
            nodes[f"spine{spine}"] = self._switch(f"spine{spine}", leaves, LftConfig(table), inner)
        self._begin(nodes, links, hosts)

    def _begin(self, nodes: dict[str, Any], links: dict[tuple[str, int], tuple[str, int]], hosts: int) -> None:
        self.hosts = [CreditHost(f"h{number}", number + 1, self.port) for number in range(hosts)]
        self.switches: dict[str, CreditSwitch] = dict(nodes)
        nodes |= {host.name: host for host in self.hosts}
        self.links = links
        self.simulator = Simulator(nodes, links, window_ns=self.port.delay_ns)

    @staticmethod
    def _switch(name: str, ports: int, lft: LftConfig, port: CreditEgressConfig) -> CreditSwitch:
        found = build_switch(
            SwitchConfig(
                name, usid=1, block=0xFD00_0000, fib={}, ports=(port,) * ports, lft=lft, credits=CreditConfig(SL2VL)
            )
        )
        assert isinstance(found, CreditSwitch)
        return found

    @staticmethod
    def _wire(links: dict[tuple[str, int], tuple[str, int]], one: tuple[str, int], other: tuple[str, int]) -> None:
        links[one], links[other] = other, one

    def flow(
        self, source: int, target: int, *, sl: int = 0, start_ns: int = 10_000, count: int = 1 << 40, gap_ns: int = 0,
        dlid: int | None = None,
    ) -> Flow:  # fmt: skip
        """Packets of one host to another, as fast as it can or one each `gap_ns`."""
        vl = SL2VL[sl]
        template = LrhDataTemplate(source + 1, target + 1 if dlid is None else dlid, 7, sl=sl, vl=vl)
        packet = bytes(template.make(RC_WRITE_MIDDLE, 0, bytes(SIZE - 30)))
        assert len(packet) == SIZE - 4
        flow = Flow(packet, vl, start_ns, count, gap_ns, next_ns=start_ns)
        self.hosts[source].flows.append(flow)
        return flow

    def run(self, until: int) -> None:
        """Let time run."""
        self.simulator.run(until)

    def rates(self, for_ns: int) -> dict[tuple[int, int, int], float]:
        """Run on for so long: the part of a line that each (source, target, SL) gets."""
        before = [dict(host.received) for host in self.hosts]
        self.run(self.simulator.now_ns + for_ns)
        bits = (SIZE - 4 + self.port.overhead_bytes) * 8 * 10**9 / self.port.rate_bps
        return {
            (slid - 1, number, sl): (count - before[number].get((slid, sl), 0)) * bits / for_ns
            for number, host in enumerate(self.hosts)
            for (slid, sl), count in host.received.items()
        }

    def drops(self) -> dict[str, int]:
        """Drops of all switches and their ports, and packets that came without credit."""
        found: Counter[str] = Counter()
        for switch in self.switches.values():
            found.update(switch.drops)
            for port in switch.egress:
                found.update(port.drops)
        found["overruns"] = sum(host.overruns for host in self.hosts)
        return {name: count for name, count in found.items() if count}


class RingFabric(CreditFabric):
    """Switches in a ring, one host each. All traffic goes one way round."""

    def __init__(self, count: int, port: CreditEgressConfig = PORT, **inner: Any) -> None:
        self.port = port
        nodes: dict[str, Any] = {}
        links: dict[tuple[str, int], tuple[str, int]] = {}
        for number in range(count):
            table = bytes((NO_PORT, *(0 if host == number else 1 for host in range(count))))
            nodes[f"s{number}"] = self._switch(f"s{number}", 3, LftConfig(table), replace(port, **inner))
            self._wire(links, (f"s{number}", 0), (f"h{number}", 0))
            self._wire(links, (f"s{number}", 1), (f"s{(number + 1) % count}", 2))
        self._begin(nodes, links, count)
