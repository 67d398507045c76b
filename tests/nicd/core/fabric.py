"""Whole fabrics in virtual time for the tests of the NIC core: real NICs, real switches, verified bytes."""

from collections.abc import Callable
from typing import Any

from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.commands import (
    ConnectQp,
    CreateQp,
    ModifyQp,
    PostWrite,
    RegisterMemory,
    SetCarrier,
)
from nicd.core.events import RECV_WITH_IMM, Completion, EvTransition, QpChange
from nicd.core.nic import Nic
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.commands import SetImpairment as SetSwitchImpairment
from switchd.core.switch import Switch
from tests.support.pattern import pattern

SOURCE_VA = 0x1000
TARGET_VA = 0x1_0000_0000
SOURCE_REGION, TARGET_REGION = 1, 2
R_KEY = 0xBEEF
READY_NS = 1_000
"""From here on both ends of every pair are RTS."""


class Fabric:
    """A topology in the simulator, with QPs between pairs of NICs and a record of every event."""

    def __init__(self, topology: Topology, **options: Any) -> None:
        self.topology = topology
        self.events: dict[str, list[Any]] = {}
        nodes: dict[str, Any] = {name: self.nic(name) for name in topology.nic_names()}
        nodes |= {name: self.switch(name) for name in topology.switch_names()}
        links = {(name, end.port): (end.peer, end.peer_port) for name in nodes for end in topology.ports(name)}
        self.simulator = Simulator(nodes, links, window_ns=topology.link_delay_ns, on_events=self._on_events, **options)
        self.flows: list[tuple[str, int, str, int]] = []
        self.posted = 0

    def nic(self, name: str, start_ns: int = 0) -> Nic:
        return Nic(nic_config(self.topology, name), start_ns)

    def switch(self, name: str, start_ns: int = 0) -> Switch:
        return build_switch(switch_config(self.topology, name), start_ns)

    def _on_events(self, name: str, events: list[Any]) -> None:
        self.events.setdefault(name, []).extend(events)

    def memory(self, name: str, size: int) -> None:
        """A source region with a pattern and an empty target region."""
        source = memoryview(pattern(self.topology.nic_index(name), size))
        command = self.simulator.command
        command(name, 1, RegisterMemory(0, SOURCE_VA, size, SOURCE_REGION, 1, source))
        command(name, 1, RegisterMemory(0, TARGET_VA, size, TARGET_REGION, R_KEY))

    def connect(self, a: str, b: str, qpn_a: int, qpn_b: int) -> None:
        """One QP at each end; PSNs begin just below their wrap in one direction."""
        ends = ((a, qpn_a, b, qpn_b, 0xFFFFF0, 77), (b, qpn_b, a, qpn_a, 77, 0xFFFFF0))
        for name, qpn, peer, peer_qpn, send, receive in ends:
            index = self.topology.nic_index(peer)
            self.simulator.command(name, 2, CreateQp(0, qpn))
            self.simulator.command(name, 3, ConnectQp(0, qpn, index, peer_qpn, send, receive))
            self.simulator.command(name, 4, ModifyQp(0, qpn, "rts"))
        self.flows.append((a, qpn_a, b, qpn_b))

    def permutation(self, shift: int, size: int) -> list[str]:
        """Memory everywhere, and a QP from every NIC to the one `shift` further; returns the NICs' names."""
        names = list(self.topology.nic_names())
        for name in names:
            self.memory(name, size)
        for index, name in enumerate(names):
            self.connect(name, names[(index + shift) % len(names)], 100 + index, 200 + index)
        return names

    def write(
        self, name: str, qpn: int, wr_id: int, offset: int, length: int, at_ns: int, imm: int | None = None
    ) -> None:
        """Copy a piece of the source region to the same place of the peer's target region."""
        work = PostWrite(0, qpn, wr_id, SOURCE_REGION, SOURCE_VA + offset, length, TARGET_VA + offset, R_KEY, imm)
        self.simulator.command(name, at_ns, work)
        self.posted += 1

    def write_all(self, size: int, pieces: int, at_ns: int = READY_NS) -> None:
        """Every flow copies `size` bytes in `pieces` messages, the odd ones with an immediate."""
        piece = size // pieces
        for a, qpn, _, _ in self.flows:
            for number in range(pieces):
                imm = number if number % 2 else None
                self.write(a, qpn, number, number * piece, piece, at_ns, imm)

    def carrier(self, nic: str, port: int, up: bool, at_ns: int) -> None:
        self.simulator.command(nic, at_ns, SetCarrier(0, port, up))

    def impair(self, switch: str, port: int, impairment: Any, at_ns: int) -> None:
        self.simulator.command(switch, at_ns, SetSwitchImpairment(0, port, impairment))

    def finish(self, deadline_ns: int, every_ns: int = 20_000) -> bool:
        """Run until every posted write is complete."""
        return self.simulator.run_until(lambda: self.done() >= self.posted, deadline_ns, every_ns)

    def found(self, kind: type, keep: Callable[[Any], bool] = lambda event: True) -> list[Any]:
        return [event for events in self.events.values() for event in events if isinstance(event, kind) and keep(event)]

    def done(self) -> int:
        return len(self.found(Completion, lambda event: event.opcode != RECV_WITH_IMM))

    def transitions(self, target: str) -> list[EvTransition]:
        return self.found(EvTransition, lambda event: event.target == target)

    def errors(self) -> list[QpChange]:
        return self.found(QpChange, lambda event: event.target == "error")

    def verify(self, size: int) -> None:
        """Every target holds its sender's pattern, and every message completed exactly once, well."""
        for a, _, b, _ in self.flows:
            assert self.core(b).region_bytes(TARGET_REGION)[:size] == pattern(self.topology.nic_index(a), size), b
        completions = self.found(Completion)
        assert {event.status for event in completions} == {"ok"}
        requests = [(event.qpn, event.wr_id) for event in completions if event.opcode != RECV_WITH_IMM]
        assert len(requests) == len(set(requests)) == self.posted

    def core(self, nic: str) -> Nic:
        node = self.simulator.node(nic)
        assert isinstance(node, Nic)
        return node

    def total(self, counter: str) -> int:
        """Sum over NICs of a counter, over the entries of a dictionary too."""
        total = 0
        for name in self.topology.nic_names():
            value = self.core(name).counters()[counter]
            total += sum(value.values()) if isinstance(value, dict) else value
        return total

    def ev_states(self) -> dict[str, int]:
        """EVs of all connected QPs by state."""
        states: dict[str, int] = {}
        for name in self.topology.nic_names():
            for row in self.core(name).counters()["ev_states"].values():
                for state, number in row.items():
                    states[state] = states.get(state, 0) + number
        return states
