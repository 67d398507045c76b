"""Two UET NICs, joined port by port by a pipe that a test may let lose, mark, trim or hold back packets."""

from collections.abc import Callable
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from mrcfabric.wire.uet import UetPeeked, uet_peeker
from mrcfabric.wire.uet_layout import ACK_CC, CONTROL, NACK, REQUESTS
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import RECV_WITH_IMM, Completion, QpChange
from nicd.core.nic import Nic
from nicd.core.uet.qp import UetLink
from nicd.core.uet.transport import UetTransport
from tests.support.pattern import pattern

SOURCE_VA, TARGET_VA = 0x1000, 0x1_0000_0000
SOURCE_REGION, TARGET_REGION = 1, 2
R_KEY = 0xBEEF
QPN_A, QPN_B = 100, 0x2345
PSN_AB, PSN_BA = 0xFFFF00, 77
FIRST_PSN = 0xFF000000 | PSN_AB
"""The first PSN from A to B."""
RATE_BPS = 100_000_000_000
DELAY_NS = 1_000


class Seen:
    """A packet on its way, taken apart."""

    __slots__ = ("entropy", "flags", "kind", "packet", "peeked", "psn")

    def __init__(self, packet: bytearray, peeked: UetPeeked) -> None:
        self.packet = packet
        self.peeked = peeked
        self.kind = peeked[2]
        self.flags = peeked[4]
        self.psn = peeked[6]
        self.entropy = peeked[13]

    @property
    def is_data(self) -> bool:
        return self.kind in REQUESTS

    @property
    def is_ack(self) -> bool:
        return self.kind == ACK_CC

    @property
    def is_nack(self) -> bool:
        return self.kind == NACK

    @property
    def is_control(self) -> bool:
        return self.kind == CONTROL


Fate = Callable[[int, int, Seen], bool | bytearray]
"""(instant of arrival, sending NIC 0 or 1, packet): whether the packet arrives, or what arrives in its place."""


def always(at_ns: int, side: int, seen: Seen) -> bool:
    """A pipe that loses nothing."""
    return True


class Pipe:
    """NIC h000 (0) with QP A and NIC h001 (1) with QP B, both RTS from 10 ns on."""

    def __init__(
        self, fate: Fate = always, *, planes: int = 1, rate_bps: int = RATE_BPS, delay_ns: int = DELAY_NS,
        size: int = 1 << 20, mtu: int = 4096, connect: bool = True, evs: int = 8, **nic: Any,
    ) -> None:  # fmt: skip
        self.fate = fate
        topology = Topology(
            name="pipe", planes=planes, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=evs * planes,
            reserve_evs_per_qp=0, mtu_bytes=mtu, nic={"transport": "uet", **nic},
        )  # fmt: skip
        self.delay_ns = delay_ns
        self.step_ns = delay_ns
        """So much time goes by per call of a core; at most the delay."""
        self.rate_bps = rate_bps
        self.nics = [self._nic(topology, name) for name in ("h000", "h001")]
        self.now = 0
        self.events: list[list[Any]] = [[], []]
        self.log: list[tuple[int, int, Seen]] = []
        """(arrival, sender, packet) of everything sent; lost packets too."""
        self.copies: Callable[[Seen], tuple[int, ...]] = lambda seen: (0,)
        """How much later than usual each copy of a packet that is not lost arrives."""
        self._peek = uet_peeker(crc=nic.get("uet_crc", "crc32"))
        self._frames: list[list[Input]] = [[], []]
        self._commands: list[list[Input]] = [[], []]
        self._sequence = 0
        self.source = memoryview(pattern(3, size))
        for side in (0, 1):
            self.command(side, 1, RegisterMemory(0, SOURCE_VA, size, SOURCE_REGION, 1, self.source))
            self.command(side, 1, RegisterMemory(0, TARGET_VA, size, TARGET_REGION, R_KEY))
        if connect:
            self.connect(QPN_A, QPN_B)

    def _nic(self, topology: Topology, name: str) -> Nic:
        config = nic_config(topology, name)
        ports = tuple(replace(port, rate_bps=self.rate_bps, delay_ns=self.delay_ns) for port in config.ports)
        return Nic(replace(config, ports=ports))

    def connect(self, qpn_a: int, qpn_b: int, at_ns: int = 2) -> None:
        ends = ((0, qpn_a, 1, qpn_b, PSN_AB, PSN_BA), (1, qpn_b, 0, qpn_a, PSN_BA, PSN_AB))
        for side, qpn, peer, peer_qpn, send, receive in ends:
            self.command(side, at_ns, CreateQp(0, qpn))
            self.command(side, at_ns, ConnectQp(0, qpn, peer, peer_qpn, send, receive))
            self.command(side, at_ns, ModifyQp(0, qpn, "rts"))

    def command(self, side: int, at_ns: int, command: Any) -> None:
        self._sequence += 1
        heappush(self._commands[side], Input(at_ns, int(Rank.COMMAND), 0, self._sequence, command))

    def write(
        self, length: int, wr_id: int = 1, at_ns: int = 10, imm: int | None = None, side: int = 0, offset: int = 0,
        qpn: int | None = None, r_key: int = R_KEY,
    ) -> None:  # fmt: skip
        qpn = qpn or (QPN_A, QPN_B)[side]
        work = PostWrite(0, qpn, wr_id, SOURCE_REGION, SOURCE_VA + offset, length, TARGET_VA + offset, r_key, imm)
        self.command(side, at_ns, work)

    def run(self, until_ns: int) -> None:
        """Everything up to `until_ns`, in steps of the link's delay; silence is skipped."""
        while self.now < until_ns:
            soonest = min(self._next(side) for side in (0, 1))
            if soonest > until_ns:
                self.now = until_ns
                for nic in self.nics:
                    nic.advance([], until_ns)
                return
            upto = min(until_ns, max(self.now, soonest - 1) + self.step_ns)
            for side in (0, 1):
                self._advance(side, upto)
            self.now = upto

    def _next(self, side: int) -> int:
        timeout = self.nics[side].next_timeout()
        least = timeout if timeout is not None else 1 << 61
        for heap in (self._frames[side], self._commands[side]):
            if heap:
                least = min(least, heap[0].at_ns)
        return max(least, self.now + 1)

    def _advance(self, side: int, upto: int) -> None:
        inputs: list[Input] = []
        for heap in (self._commands[side], self._frames[side]):
            while heap and heap[0].at_ns <= upto:
                inputs.append(heappop(heap))
        inputs.sort(key=lambda entry: entry[:4])
        nic = self.nics[side]
        for sent in nic.advance(inputs, upto):
            packet = bytearray(sent[2])
            seen = Seen(packet, self._peek(packet))
            assert seen.peeked[0] is None, seen.peeked[0]
            self.log.append((sent[1], side, seen))
            fate = self.fate(sent[1], side, seen)
            body = packet if fate is True else fate
            if body is False:
                continue
            for later in self.copies(seen):
                self._sequence += 1
                frame = Input(sent[1] + later, int(Rank.FRAME), sent[0], self._sequence, bytearray(body))
                heappush(self._frames[1 - side], frame)
        self.events[side] += nic.drain_events()

    # -- what came of it

    def sent(self, side: int = 0) -> list[Seen]:
        """What a NIC has sent."""
        return [seen for _, sender, seen in self.log if sender == side]

    def data(self, side: int = 0) -> list[Seen]:
        """The requests among it."""
        return [seen for seen in self.sent(side) if seen.is_data]

    def completions(self, side: int = 0, opcode: str | None = None) -> list[Completion]:
        """Of writes, or of one opcode."""
        return [
            event for event in self.events[side]
            if isinstance(event, Completion) and (event.opcode == opcode if opcode else event.opcode != RECV_WITH_IMM)
        ]  # fmt: skip

    def errors(self, side: int = 0) -> list[QpChange]:
        return [event for event in self.events[side] if isinstance(event, QpChange) and event.target == "error"]

    def target(self, side: int = 1) -> bytes:
        return self.nics[side].region_bytes(TARGET_REGION)

    def transport(self, side: int) -> UetTransport:
        transport = self.nics[side]._transport
        assert isinstance(transport, UetTransport)
        return transport

    def link(self, side: int, qpn: int | None = None) -> UetLink:
        link = self.transport(side).qps[qpn or (QPN_A, QPN_B)[side]].link
        assert link is not None
        return link

    def counter(self, side: int, *names: str) -> Any:
        value: Any = self.nics[side].counters()
        for name in names:
            value = value[name]
        return value

    @property
    def quiet(self) -> bool:
        """Whether nothing more happens by itself."""
        return all(nic.next_timeout() is None for nic in self.nics) and not any(self._frames)
