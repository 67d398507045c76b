"""A small fabric of the product's own cores that makes traffic: the corpus, and the place where a NIC is attacked.

Four NICs on two T0s in two planes. `h000` exchanges messages with `h002` and with `h003`, both ways, over QPs that
begin just below the wrap of their PSNs. Owns who talks to whom and what must come out of it; what is damaged on the
way is the targets'. Everything is in virtual time and the same on every run.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from mrcfabric.node import Input, Node, Rank, Transmit
from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.commands import Command, ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import RECV_WITH_IMM, Completion, QpChange
from nicd.core.nic import Nic
from nicd.core.settings import NicConfig
from switchd.compose import switch_config
from switchd.core.settings import SwitchConfig
from switchd.core.switch import Switch

TOPOLOGY = Topology(
    name="fuzz", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=4,
    mtu_bytes=256, nic={"max_wimm": 32, "mpr_units": 1, "work_requests_max": 64}, switch={"adjacency": True},
)  # fmt: skip
SPILLING = replace(TOPOLOGY, nic={**TOPOLOGY.nic, "sram_bytes": 1, "sram_miss_ns": 300, "sram_waiting_max": 64})
"""The same with room for one QP's context: all but one wait off the chip."""
VICTIM, CULPRIT, INNOCENT = "h000", "h002", "h003"
QPN_OF = {(VICTIM, CULPRIT): 20, (CULPRIT, VICTIM): 21, (VICTIM, INNOCENT): 30, (INNOCENT, VICTIM): 31}
"""(NIC, its peer) -> the QP between them, at the first one."""
PIECE = 900
PIECES = 6
LENGTH = PIECE * PIECES
SOURCE_VA, TARGET_VA = 0x1000, 0x10_0000
READY_NS = 100
R_KEYS = {CULPRIT: 0x0C, VICTIM: 0x0A0A, INNOCENT: 0x0B0B0B0B}
"""Key of the region that this NIC's peer lets it write."""


@cache
def config_of_nic(name: str, spilling: bool = False) -> NicConfig:
    """What one NIC of the stage is made from."""
    return nic_config(SPILLING if spilling else TOPOLOGY, name)


@cache
def config_of_switch(name: str) -> SwitchConfig:
    """What one switch of the stage is made from."""
    return switch_config(TOPOLOGY, name)


@cache
def pattern(name: str, peer: str) -> bytes:
    """What one NIC writes to another: bytes that differ between the four directions."""
    seed = QPN_OF[name, peer]
    return bytes((value * 167 + seed * 59 + (value >> 8) * 31) & 0xFF for value in range(LENGTH))


def region_of(peer: str, target: bool) -> int:
    """Number of the region that is exchanged with a peer: the one it writes to, or the one that is sent to it."""
    return 2 * TOPOLOGY.nic_index(peer) + 10 + target


def peers_of(name: str) -> list[str]:
    """The NICs that a NIC has a QP to."""
    return [peer for end, peer in QPN_OF if end == name]


def commands_of(name: str) -> list[tuple[int, Command]]:
    """(instant, command) that set one NIC up and give it its work; fresh memory each time."""
    found: list[tuple[int, Command]] = []
    for peer in peers_of(name):
        qpn, first = QPN_OF[name, peer], TOPOLOGY.nic_index(name)
        source = memoryview(bytearray(pattern(name, peer)))
        found += [
            (1, RegisterMemory(0, SOURCE_VA, LENGTH, region_of(peer, False), 0xF000 + qpn, source)),
            (1, RegisterMemory(0, TARGET_VA, LENGTH, region_of(peer, True), R_KEYS[peer])),
            (2, CreateQp(0, qpn)),
            (3, ConnectQp(0, qpn, TOPOLOGY.nic_index(peer), QPN_OF[peer, name], _psn(name), _psn(peer))),
            (4, ModifyQp(0, qpn, "rts")),
        ]
        found += [
            (READY_NS + 400 * number + first, _write(qpn, name, peer, number, number if number % 2 else None))
            for number in range(PIECES)
        ]
    return sorted(found, key=lambda entry: entry[0])


def _psn(name: str) -> int:
    return (0xFFFFF0 + 5 * TOPOLOGY.nic_index(name)) & 0xFFFFFF


def _write(qpn: int, name: str, peer: str, number: int, imm: int | None) -> PostWrite:
    offset = number * PIECE
    return PostWrite(
        0, qpn, number, region_of(peer, False), SOURCE_VA + offset, PIECE, TARGET_VA + offset, R_KEYS[name], imm
    )


class Stage:
    """The fabric, its work, and a record of every event. `nodes` replaces cores by name."""

    def __init__(self, nodes: dict[str, Node] | None = None) -> None:
        every: dict[str, Node] = {name: Nic(config_of_nic(name)) for name in TOPOLOGY.nic_names()}
        every |= {name: Switch(config_of_switch(name)) for name in TOPOLOGY.switch_names()}
        every |= nodes or {}
        self.events: dict[str, list[Any]] = {name: [] for name in every}
        self.simulator = Simulator(
            every, _links(), window_ns=TOPOLOGY.link_delay_ns, on_events=lambda name, new: self.events[name].extend(new)
        )
        for name in (VICTIM, CULPRIT, INNOCENT):
            for at_ns, command in commands_of(name):
                self.simulator.command(name, at_ns, command)

    def finish(self, deadline_ns: int) -> bool:
        """Run until all work between the victim and the innocent is complete; False when it is not by the deadline."""
        return self.simulator.run_until(lambda: self.completed(VICTIM, INNOCENT), deadline_ns, 20_000)

    def completed(self, one: str, two: str) -> bool:
        """Every message between two NICs has come to its end."""
        return all(len(self.ends(*way)) >= PIECES for way in ((one, two), (two, one)))

    def ends(self, name: str, peer: str) -> list[Completion]:
        """Completions of the messages that one NIC posted towards another."""
        qpn = QPN_OF[name, peer]
        return [
            event
            for event in self.events[name]
            if isinstance(event, Completion) and event.qpn == qpn and event.opcode != RECV_WITH_IMM
        ]

    def failures(self, name: str, peer: str) -> list[QpChange]:
        """How the QP at `name` towards `peer` went into error, if it did."""
        qpn = QPN_OF[name, peer]
        return [
            event
            for event in self.events[name]
            if isinstance(event, QpChange) and event.qpn == qpn and event.target == "error"
        ]

    def written(self, name: str, peer: str) -> bytes:
        """What the region of `name` holds that `peer` writes to."""
        nic = self.simulator.node(name)
        assert isinstance(nic, Nic)
        return nic.region_bytes(region_of(peer, True))


@cache
def _links() -> dict[tuple[str, int], tuple[str, int]]:
    return {
        (name, end.port): (end.peer, end.peer_port) for name in TOPOLOGY.node_names() for end in TOPOLOGY.ports(name)
    }


class Ear:
    """A node that notes what reaches the one it stands for. A `mrcfabric.node.Node`."""

    def __init__(self, node: Node, heard: Callable[[Input], None]) -> None:
        self._node = node
        self._heard = heard
        self.name = node.name

    @property
    def now_ns(self) -> int:
        return self._node.now_ns

    def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
        for entry in map(Input._make, inputs):
            if entry.rank == Rank.FRAME:
                # Whoever is behind this may change the packet in place.
                self._heard(entry._replace(body=bytes(entry.body)))
        return self._node.advance(inputs, until)

    def next_timeout(self) -> int | None:
        return self._node.next_timeout()

    def drain_events(self) -> list[Any]:
        return list(self._node.drain_events())

    def counters(self) -> dict[str, Any]:
        return self._node.counters()


@cache
def frames_at(name: str) -> tuple[Input, ...]:
    """Every frame that reaches a node of the undisturbed stage, in order."""
    heard: list[Input] = []
    node: Node = Nic(config_of_nic(name)) if name.startswith("h") else Switch(config_of_switch(name))
    stage = Stage({name: Ear(node, heard.append)})
    assert stage.finish(1_000_000), "the undisturbed stage plays to its end"
    return tuple(heard)


@cache
def packets_of_each_kind() -> tuple[bytes, ...]:
    """One packet per opcode that the stage's NICs exchange."""
    kinds: dict[int, bytes] = {}
    for name in (VICTIM, CULPRIT, "p0-t0-0", "p1-t1-0"):
        for entry in frames_at(name):
            kinds.setdefault(entry.body[88], entry.body)
    return tuple(kinds[opcode] for opcode in sorted(kinds))
