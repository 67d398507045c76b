"""Ladders: two real NICs, a wire that does what it is told, posts at instants, and what came of it.

    ladder = Ladder()
    ladder.wire.drop(direction="ab", number=5, nth=1)
    ladder.write(20)                       # twenty full packets from a to b
    ladder.run()
    assert ladder.a.retransmits == {"gap": 1}
    assert ladder.a.timeouts == 0

Owns the ends, their memory and QPs, and the questions a test asks. What happens to packets is `wire`'s. By default the
two NICs stand back to back, with as much delay between them as a fabric's longest path has; with `switches=True` there
is a real fabric between the wire (which then is in the cables of NIC a) and NIC b.

Everything a test reads is of end a, end b, or the record of the wire, and all of it in fabric time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mrcfabric.paths import Destination, PathTable
from mrcfabric.plane_ports import PlanePorts
from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Topology
from mrcfabric.wire.layout import DATA_OPCODES, PSN_MASK
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import RECV_WITH_IMM, CommandDone, Completion, QpChange
from nicd.core.nic import Nic
from switchd.compose import switch_config
from switchd.core.switch import Switch
from tests.support.pattern import pattern
from tests.support.wire import AB, BA, Seen, Wire

SOURCE_VA = 0x1000
TARGET_VA = 0x1_0000_0000
SOURCE_REGION, TARGET_REGION = 1, 2
R_KEY = 0xBEEF
START_NS = 1_000
"""Posts go here unless they say otherwise: both ends are RTS."""
FIRST_PSN = {AB: 0xFFFFF8, BA: 77}
"""First PSNs: eight packets below the wrap in the direction that tests use most."""
NAMES = ("h000", "h002")
"""Two NICs below different T0s."""


class Cabled(PathTable):
    """The paths of a ladder whose NICs may number their ports otherwise than the planes are numbered."""

    def __init__(self, topology: Topology, ports: Mapping[str, Sequence[int]], name: str) -> None:
        super().__init__(topology, topology.nic_index(name))
        self._own = tuple(ports[name])
        self._of = {topology.nic_index(other): PlanePorts(self._own, theirs) for other, theirs in ports.items()}

    @property
    def ports(self) -> tuple[int, ...]:
        return self._own

    def towards(self, peer: int) -> Destination:
        destination = super().towards(peer)
        destination.ports = self._of[peer]
        return destination


class End:
    """One of the two NICs, with one QP."""

    def __init__(self, ladder: "Ladder", name: str, qpn: int) -> None:
        self._ladder = ladder
        self.name = name
        self.qpn = qpn
        self.events: list[Any] = []

    @property
    def nic(self) -> Nic:
        node = self._ladder.simulator.node(self.name)
        assert isinstance(node, Nic)
        return node

    @property
    def counters(self) -> dict[str, Any]:
        return self.nic.counters()

    @property
    def qp(self) -> dict[str, Any]:
        """Its row of the table of QPs."""
        (row,) = [row for row in self.nic.qp_table() if row["qpn"] == self.qpn]
        return row

    def _nonzero(self, counter: str) -> dict[str, int]:
        return {name: count for name, count in self.counters[counter].items() if count}

    @property
    def retransmits(self) -> dict[str, int]:
        """Retransmissions by cause, causes without any left out."""
        return self._nonzero("retransmits")

    @property
    def drops(self) -> dict[str, int]:
        return self._nonzero("drops")

    def count(self, counter: str) -> int:
        """A counter; of a table of counters the sum."""
        value = self.counters[counter]
        return sum(value.values()) if isinstance(value, dict) else int(value)

    @property
    def timeouts(self) -> int:
        return self.count("timeouts")

    @property
    def probes(self) -> int:
        """Tail probes: what has arrived of what went silent?"""
        return self.count("tail_probes")

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def completions(self) -> list[Completion]:
        """Of its own posts, in order."""
        return [event for event in self.told(Completion) if event.opcode != RECV_WITH_IMM]

    @property
    def completed(self) -> list[int]:
        """The wr_ids of its own posts, in the order of their completions."""
        return [event.wr_id for event in self.completions]

    @property
    def immediates(self) -> list[int]:
        """What the peer's immediates said, in the order of their completions here."""
        return [event.imm for event in self.told(Completion) if event.opcode == RECV_WITH_IMM]

    @property
    def refusals(self) -> list[str]:
        """Commands that were refused, and why."""
        return [event.error for event in self.told(CommandDone) if event.error is not None]

    @property
    def errors(self) -> list[str]:
        """Reasons for which the QP went to ERROR."""
        return [event.reason for event in self.told(QpChange) if event.target == "error"]

    @property
    def target(self) -> bytes:
        """What peers have written here."""
        return self.nic.region_bytes(TARGET_REGION)

    def command(self, command: Any, at_ns: int | None = None) -> None:
        self._ladder.simulator.command(self.name, at_ns, command)


class Ladder:
    """Two ends and the wire between them; see the module text."""

    def __init__(
        self,
        *,
        planes: int = 2,
        switches: bool = False,
        window_ns: int | None = None,
        size: int = 1 << 20,
        mtu_bytes: int = 1024,
        rate_bps: int = 10_000_000_000,
        first_psn: Mapping[str, int] = FIRST_PSN,
        a: Mapping[str, Any] | None = None,
        b: Mapping[str, Any] | None = None,
        connect: bool = True,
        connect_a: Mapping[str, Any] | None = None,
        connect_b: Mapping[str, Any] | None = None,
        ports: tuple[Sequence[int], Sequence[int]] | None = None,
        **nic: Any,
    ) -> None:
        """`nic`: settings of both ends; `a` and `b`: of one. `size`: bytes of each source and each target.

        `ports`: by plane, the port of a and that of b, where they are not numbered as the planes are.

        `connect=False` leaves creating and connecting the QPs to the test; `connect_a` and `connect_b` are further
        arguments of their ConnectQp. `window_ns`: how the simulator cuts time, which must change nothing.
        """
        self.topology = Topology(
            name="ladder", planes=planes, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8 * planes,
            reserve_evs_per_qp=4 * planes, mtu_bytes=mtu_bytes, rate_bps=rate_bps,
            nic=nic,
        )  # fmt: skip
        self.mtu = mtu_bytes
        self.size = size
        self.first_psn = dict(first_psn)
        self.a = End(self, NAMES[0], 100)
        self.b = End(self, NAMES[1], 200)
        self._ends = {NAMES[0]: self.a, NAMES[1]: self.b}
        self._ports = dict(zip(NAMES, ports or (range(planes), range(planes)), strict=True))
        nodes: dict[str, Any] = {name: self._nic(name, own or {}) for name, own in zip(NAMES, (a, b), strict=True)}
        self.base_rtt_ns = nodes[NAMES[0]].config.settings.base_rtt_ns
        links = self._links(nodes, switches)
        self.wire: Wire = nodes["wire"]
        self.wire.first_psn = self.first_psn
        self.simulator = Simulator(
            nodes,
            links,
            window_ns=window_ns or self.topology.link_delay_ns,
            on_events=lambda name, new: self._on_events(name, new),
        )
        self.posted = 0
        self._offset = {self.a.name: 0, self.b.name: 0}
        for end in (self.a, self.b):
            source = memoryview(pattern(end.qpn, size))
            end.command(RegisterMemory(0, SOURCE_VA, size, SOURCE_REGION, 1, source), 1)
            end.command(RegisterMemory(0, TARGET_VA, size, TARGET_REGION, R_KEY), 1)
        if connect:
            self.connect(dict(connect_a or {}), dict(connect_b or {}))

    # -- building

    def _nic(self, name: str, own: Mapping[str, Any]) -> Nic:
        config = nic_config(self.topology, name)
        paths = Cabled(self.topology, self._ports, name)
        return Nic(replace(config, settings=replace(config.settings, **own), paths=paths))

    def _links(self, nodes: dict[str, Any], switches: bool) -> dict[tuple[str, int], tuple[str, int]]:
        topology = self.topology
        planes = topology.planes
        # Together with the cable on either side as long as the longest path of the fabric.
        delay_ns = topology.link_delay_ns if switches else 3 * topology.link_delay_ns
        nodes["wire"] = Wire("wire", planes, delay_ns)
        a, b = NAMES
        links = {(a, port): ("wire", plane) for plane, port in enumerate(self._ports[a])}
        links |= {end: near for near, end in links.items()}
        far = {plane: (b, port) for plane, port in enumerate(self._ports[b])}
        if switches:
            for name in topology.switch_names():
                nodes[name] = Switch(switch_config(topology, name))
                links |= {
                    (name, end.port): (end.peer, end.peer_port)
                    for end in topology.ports(name)
                    if end.peer in nodes or not end.peer.startswith("h")
                }
            links |= {(b, end.port): (end.peer, end.peer_port) for end in topology.ports(b)}
            far = {end.port: (end.peer, end.peer_port) for end in topology.ports(a)}
        for plane, end in far.items():
            links["wire", planes + plane] = end
            links[end] = ("wire", planes + plane)
        return links

    def _on_events(self, name: str, events: list[Any]) -> None:
        if name in self._ends:
            self._ends[name].events += events

    def connect(self, more_a: Mapping[str, Any], more_b: Mapping[str, Any]) -> None:
        """Create both QPs, connect them, and let both send; the maps are further arguments of ConnectQp."""
        psns = self.first_psn
        plans = ((self.a, self.b, psns[AB], psns[BA], more_a), (self.b, self.a, psns[BA], psns[AB], more_b))
        for end, peer, send, receive, more in plans:
            end.command(CreateQp(0, end.qpn), 2)
            index = self.topology.nic_index(peer.name)
            end.command(ConnectQp(0, end.qpn, index, peer.qpn, send, receive, **more), 3)
            end.command(ModifyQp(0, end.qpn, "rts"), 4)

    def port(self, end: End, plane: int) -> int:
        """The port of an end by which a plane leaves."""
        return self._ports[end.name][plane]

    # -- the script

    def write(
        self,
        packets: int = 0,
        *,
        length: int | None = None,
        imm: int | None = None,
        at_ns: int | None = None,
        end: End | None = None,
        wr_id: int | None = None,
        offset: int | None = None,
    ) -> int:
        """Post a WRITE of so many full packets, or of `length` bytes, from a to b (or from `end`); returns its wr_id.

        Each takes the next piece of the source to the same place of the target. `imm`: a WRITE_WITH_IMM.
        """
        who = end or self.a
        length = packets * self.mtu if length is None else length
        place = self._offset[who.name] if offset is None else offset
        self._offset[who.name] = place + length
        number = self.posted if wr_id is None else wr_id
        if at_ns is None:
            at_ns = max(START_NS, self.simulator.now_ns + 1)
        work = PostWrite(0, who.qpn, number, SOURCE_REGION, SOURCE_VA + place, length, TARGET_VA + place, R_KEY, imm)
        who.command(work, at_ns)
        self.posted += 1
        return number

    def run(self, rtts: int = 400) -> bool:
        """Run until every post is complete and nothing is left to happen, for `rtts` base RTTs at most.

        False when some post is not complete.
        """
        deadline_ns = self.simulator.now_ns + rtts * self.base_rtt_ns
        done = self.simulator.run_until(self.all_complete, deadline_ns, self.base_rtt_ns // 4)
        self.simulator.run_until(lambda: False, min(deadline_ns, self.simulator.now_ns + 20 * self.base_rtt_ns), 1_000)
        return done or self.all_complete()

    def run_for(self, rtts: float) -> None:
        """Run for so many base RTTs."""
        self.simulator.run(self.simulator.now_ns + int(rtts * self.base_rtt_ns))

    def all_complete(self) -> bool:
        """Every post has ended, well or not."""
        return len(self.a.completions) + len(self.b.completions) >= self.posted

    # -- what came of it

    def sent(self, direction: str = AB, **which: Any) -> list[Seen]:
        """Packets on the wire: `opcode`, `number`, `psn`, `rtx`, `plane` as given, in order of time."""

        def fits(seen: Seen) -> bool:
            for name, wanted in which.items():
                value = getattr(seen, name)
                if not (
                    value in wanted if isinstance(wanted, (set, frozenset, range, tuple, list)) else value == wanted
                ):
                    return False
            return True

        return [seen for seen in self.wire.seen if seen.direction == direction and fits(seen)]

    def data(self, direction: str = AB, **which: Any) -> list[Seen]:
        """Data packets on the wire."""
        return [seen for seen in self.sent(direction, **which) if seen.opcode in DATA_OPCODES]

    def verify(self) -> None:
        """Every post completed well, exactly once, and every byte is where it belongs."""
        for end, peer in ((self.a, self.b), (self.b, self.a)):
            size = self._offset[end.name]
            assert peer.target[:size] == pattern(end.qpn, self.size)[:size], f"bytes of {end.name} differ"
            assert {event.status for event in end.completions} <= {"ok"}, end.completions
            assert len(set(end.completed)) == len(end.completed)
        assert self.all_complete()

    def psn(self, number: int, direction: str = AB) -> int:
        """The 24-bit PSN of the data packet `number` of a direction."""
        return (self.first_psn[direction] + number) & PSN_MASK

    def __str__(self) -> str:
        """The whole ladder, for people."""
        return "\n".join(str(seen) for seen in self.wire.seen)
