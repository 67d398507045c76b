"""One InfiniBand link in virtual time: two ports that face each other, every instant in its order."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from mrcfabric.credit_egress import CreditEgress
from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from mrcfabric.wire.flow_control import parse
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import blocks_of, vl_of
from mrcfabric.wire.lrh_rc import LrhDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_MIDDLE

# One byte per nanosecond, nothing added: times can be read off sizes. A flow control packet takes 6 ns.
PLAIN = CreditEgressConfig(rate_bps=8_000_000_000, delay_ns=1_000, overhead_bytes=0, blocks=(64, 64), frame_blocks=1)
_TEMPLATES = [LrhDataTemplate(1, 2, 3, vl=vl) for vl in range(16)]


def ib_packet(size: int, vl: int = 0, number: int = 0) -> bytearray:
    """A packet of so many bytes, 2 more than a multiple of 4, with a number as its PSN."""
    packet = _TEMPLATES[vl].make(RC_WRITE_MIDDLE, number, bytes(size - 26))
    assert len(packet) == size, f"{len(packet)}, not {size}"
    return packet


def number_of(packet: Any) -> int:
    """The number that `ib_packet` wrote."""
    return int.from_bytes(packet[17:20], "big")


class CreditLink:
    """Ends 0 and 1. A packet that has come in is freed `hold_ns` later."""

    def __init__(self, first: CreditEgressConfig = PLAIN, second: CreditEgressConfig | None = None) -> None:
        configs = first, first if second is None else second
        self.ends = [CreditEgress(config, end, Rng("link", end)) for end, config in enumerate(configs)]
        self.hold_ns: Callable[[int], int] = lambda _: 0
        self.now = 0
        self.arrived: list[list[tuple[int, Any]]] = [[], []]
        """By end: (instant, packet) of what came in, flow control packets too."""
        self.overruns = 0
        self.inflight = [[0] * 15, [0] * 15]
        """By sending end and VL: blocks on the link."""
        self.deaf: Callable[[int, Any], bool] = lambda end, packet: False
        """Whether an end does not get a packet that came."""
        self._events: list[tuple[int, int, int, int, Any]] = []
        self._count = 0
        for end in (0, 1):
            self.ends[end].begin(0)

    def at(self, at_ns: int, do: Callable[[list[list[Transmit]]], None]) -> None:
        """Do something at an instant; it gets a list for the transmits of each end."""
        self._push(at_ns, 1, -1, do)

    def offer(self, at_ns: int, end: int, packet: bytearray, origin: int | None = None) -> None:
        """Offer a packet of its VL."""
        self.at(at_ns, lambda out: self._offer(at_ns, end, packet, origin, out))

    def run(self, until: int, look: Callable[[], None] | None = None) -> None:
        """Let everything happen up to an instant; `look` is called after each."""
        while True:
            due = min(self._events[0][0] if self._events else NEVER, *(end.next_departure_ns for end in self.ends))
            if due > until:
                break
            assert due >= self.now, f"back from {self.now} to {due}"
            self.now = due
            outs: list[list[Transmit]] = [[], []]
            while self._events and self._events[0][0] == due:
                _, rank, end, _, body = heappop(self._events)
                if rank:
                    body(outs)
                else:
                    self._receive(due, end, body, outs)
            for end in (0, 1):
                self.ends[end].run(due, outs[end])
            for end, out in enumerate(outs):
                for sent in out:
                    self._push(sent[1], 0, 1 - end, sent[2])
                    if not isinstance(sent[2], ControlFrame):
                        self.inflight[end][vl_of(sent[2])] += blocks_of(len(sent[2]))
            if look is not None:
                look()
        self.now = until

    @property
    def quiet(self) -> bool:
        """Nothing will happen any more."""
        return not self._events and all(end.next_departure_ns == NEVER for end in self.ends)

    def packets(self, end: int) -> list[tuple[int, int]]:
        """(arrival, number) of the packets that came in at an end."""
        return [(at_ns, number_of(body)) for at_ns, body in self.arrived[end] if not isinstance(body, ControlFrame)]

    def said(self, end: int, vl: int = 0) -> list[tuple[int, int, int, int]]:
        """(arrival, operand, FCTBS, FCCL) of the flow control packets of a VL that came in at an end."""
        found = [(at_ns, parse(body)) for at_ns, body in self.arrived[end] if isinstance(body, ControlFrame)]
        return [(at_ns, one.operand, one.fctbs, one.fccl) for at_ns, one in found if one is not None and one.vl == vl]

    def _push(self, at_ns: int, rank: int, end: int, body: Any) -> None:
        self._count += 1
        heappush(self._events, (at_ns, rank, end, self._count, body))

    def _offer(self, at_ns: int, end: int, packet: bytearray, origin: int | None, out: list[list[Transmit]]) -> None:
        self.ends[end].offer(at_ns, packet, vl_of(packet), out[end], origin)

    def _receive(self, now: int, end: int, packet: Any, outs: list[list[Transmit]]) -> None:
        frame = isinstance(packet, ControlFrame)
        if not frame:
            self.inflight[1 - end][vl_of(packet)] -= blocks_of(len(packet))
        if self.deaf(end, packet):
            return
        self.arrived[end].append((now, packet))
        port = self.ends[end]
        if frame:
            said = parse(packet)
            assert said is not None
            port.heard(now, said, outs[end])
            return
        vl, blocks = vl_of(packet), blocks_of(len(packet))
        if not port.taken(now, vl, blocks, outs[end]):
            self.overruns += 1
            return
        hold_ns = self.hold_ns(number_of(packet))
        if hold_ns:
            self.at(now + hold_ns, lambda out: self._free(now + hold_ns, end, port, vl, blocks, out))
        else:
            port.freed(now, vl, blocks, outs[end])

    def _free(
        self, now: int, end: int, port: CreditEgress, vl: int, blocks: int, out: list[list[Transmit]]
    ) -> None:  # fmt: skip
        # The buffer of a port that has died is gone.
        if port is self.ends[end]:
            port.freed(now, vl, blocks, out[end])
