"""Switches in a ring, which no topology file has: the fabric in which pauses wait for one another.

Owns the wiring and the tables. Switches, NICs and their ports are the daemons' own cores, with the configuration that
a T0 of a common topology has: below each a NIC that sends and one that receives, and two up-links, here the ways to the
next switch and to the one before. In the ring packets go to the next switch until they are there. In the *line* the
cable between the last switch and the first is missing, and packets go the only way there is.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mrcfabric.naming import nic_address, nic_name, t0_name
from mrcfabric.node import Node
from mrcfabric.sim.simulator import Simulator
from mrcfabric.units import NEVER, Buffer, Instant
from nicd.compose import nic_config
from nicd.core.nic import Nic
from nicd.daemon import NicDaemon
from studies.systems.bench_fabric import fabric
from studies.systems.storm import DATA_CLASS
from switchd.compose import switch_config
from switchd.core.credited import CreditSwitch
from switchd.core.events import EcmpMember
from switchd.core.forwarding.lft import NO_PORT, LftConfig, LftForwarding
from switchd.core.lossless import LosslessSwitch
from switchd.core.routed import RoutedSwitch
from switchd.core.settings import SwitchConfig
from switchd.core.switch import Switch

SENDER: Final = 0
"""Port and place of the NIC that sends, below its switch."""
RECEIVER: Final = 1
NEXT: Final = 2
"""The port towards the next switch."""
BEFORE: Final = 3
_MESSAGE: Final = 1 << 20
_VA: Final = 1 << 20
_QPN: Final = 16
_DESTINATION: Final = slice(24, 40)
"""Of an IPv6 header."""


class Table:
    """A static table by destination: `switchd.core.forwarding.Forwarding`."""

    def __init__(self, ports: Mapping[bytes, int]) -> None:
        self._ports = ports

    def route(self, at_ns: Instant, in_port: int, packet: Buffer) -> tuple[int, Buffer] | str:
        """The port of a packet's destination."""
        port = self._ports.get(bytes(packet[_DESTINATION]))
        return "no_route" if port is None else (port, packet)

    def carrier(self, at_ns: Instant, port: int, up: bool) -> None: ...

    @property
    def next_change_ns(self) -> Instant:
        return NEVER

    def follow(self, at_ns: Instant) -> list[EcmpMember]:
        return []

    def chosen(self, packet: Buffer) -> dict[str, Any] | None:
        return None

    def counters(self) -> dict[str, Any]:
        return {}


class Placed(NamedTuple):
    """How things stand."""

    at_ns: Instant
    placed: int
    """Bytes that receivers have."""
    held: int
    """Bytes that wait in switches."""
    dropped: int


class RingFabric:
    """So many switches; each sender writes to the receiver below the switch after the next one."""

    def __init__(
        self, switches: int, *, nic: Mapping[str, Any], switch: Mapping[str, Any], dscp: Mapping[str, Any],
        line: bool = False, **changes: Any,
    ) -> None:  # fmt: skip
        """`line`: without the cable that makes it a ring."""
        self.topology = fabric("ring", 2, 2, t0_per_plane=switches, nic=nic, switch=switch, dscp=dscp, **changes)
        self._count = switches
        self._line = line
        self._switches = [self._switch(place) for place in range(switches)]
        self._nics = [Nic(nic_config(self.topology, nic_name(number))) for number in range(2 * switches)]
        nodes: dict[str, Node] = {t0_name(0, place): core for place, core in enumerate(self._switches)}
        nodes |= {nic_name(number): core for number, core in enumerate(self._nics)}
        links: dict[tuple[str, int], tuple[str, int]] = {}
        for place in range(switches):
            here = t0_name(0, place)
            pairs = [((here, port), (nic_name(2 * place + port), 0)) for port in (SENDER, RECEIVER)]
            if place < switches - 1 or not line:
                pairs.append(((here, NEXT), (t0_name(0, (place + 1) % switches), BEFORE)))
            for one, other in pairs:
                links[one], links[other] = other, one
        self._simulator = Simulator(nodes, links, window_ns=self.topology.link_delay_ns)
        self._tokens = 0
        for number in range(2 * switches):
            region = {"va": _VA, "length": _MESSAGE, "region_id": 1, "r_key": 1}
            self._command(number, "register_memory", region, 1)

    def _switch(self, place: int) -> Switch:
        config = switch_config(self.topology, t0_name(0, place))
        if config.lft is not None:
            return self._credited(config, place)
        ports = {}
        for number in range(2 * self._count):
            ports[nic_address(number)] = self._port(place, number)
        table = Table(ports)
        return RoutedSwitch(config, table) if config.lossless is None else LosslessSwitch(config, table)

    def _credited(self, config: SwitchConfig, place: int) -> Switch:
        """A switch of InfiniBand: its table by LID."""
        table = bytes((NO_PORT, *(self._port(place, number) for number in range(2 * self._count))))
        forwarding = LftForwarding(LftConfig(table), len(config.ports))
        return CreditSwitch(config, forwarding)

    def _port(self, place: int, nic: int) -> int:
        there = nic // 2
        if there == place:
            return nic % 2
        return BEFORE if self._line and there < place else NEXT

    def start(self, messages: int, at_ns: Instant, apart_ns: int) -> None:
        """Senders begin one after the other."""
        for place in range(self._count):
            ends = 2 * place + SENDER, 2 * ((place + 2) % self._count) + RECEIVER
            begin_ns = at_ns + place * apart_ns
            for nic, peer in (ends, ends[::-1]):
                qp = {"qpn": _QPN, "peer_index": peer, "peer_qpn": _QPN, "psn_send": 0, "psn_receive": 0}
                self._command(nic, "create_qp", {"qpn": _QPN}, at_ns - 3)
                self._command(nic, "connect_qp", qp, at_ns - 2)
                self._command(nic, "modify_qp", {"qpn": _QPN, "state": "rts"}, at_ns - 1)
            work = {"qpn": _QPN, "wr_id": 0, "local_region": 1, "local_va": _VA, "length": _MESSAGE, "remote_va": _VA,
                    "r_key": 1}  # fmt: skip
            for _ in range(messages):
                self._command(ends[0], "post_write", work, begin_ns)

    def stop(self, at_ns: Instant) -> None:
        """No sender has anything more to send: their QPs are gone."""
        for place in range(self._count):
            self._command(2 * place + SENDER, "destroy_qp", {"qpn": _QPN}, at_ns)

    def run(self, until: Instant) -> Placed:
        """Everything up to `until`."""
        self._simulator.run(until)
        ports = [port for core in self._switches for port in core.egress]
        return Placed(
            until,
            sum(int(self._nics[2 * place + RECEIVER].counters()["bytes_placed"]) for place in range(self._count)),
            sum(port.data_bytes for port in ports),
            sum(sum(core.drops.values()) for core in self._switches) + sum(sum(port.drops.values()) for port in ports),
        )

    def paused(self) -> int:
        """Switches that ask the one before them to wait."""
        return sum(core.counters()["pfc"][BEFORE][DATA_CLASS]["xoff"] for core in self._switches)

    def storms(self) -> int:
        """How often watchdogs have ended a pause."""
        return sum(
            classes[DATA_CLASS]["storms"] for core in self._switches for classes in core.counters()["pfc"].values()
        )  # fmt: skip

    def _command(self, nic: int, op: str, args: dict[str, Any], at_ns: Instant) -> None:
        self._tokens += 1
        self._simulator.command(nic_name(nic), at_ns, NicDaemon.commands.build(op, args, self._tokens))
