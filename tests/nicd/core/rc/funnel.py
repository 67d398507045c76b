"""Some RC NICs that send to one through one queue, which marks by RED. Only the queue is modelled here."""

from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

from mrcfabric.naming import nic_of_address
from mrcfabric.node import Input, Rank
from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import CE, ECT_0, ecn_of, mark_ce
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.nic import Nic
from nicd.core.rc.dcqcn import Pace
from nicd.core.rc.qp import RcLink

DELAY_NS = 1_000
OVERHEAD = 38


class Funnel:
    """Senders h001 on, each with QP 100 to the QP 200 + its number of h000; all ports have the same rate."""

    def __init__(
        self, senders: int, rate_bps: int, *, kmin: int, kmax: int, pmax_ppm: int, length: int, starts: list[int],
        messages: int = 1, mtu: int = 1024, **nic: Any,
    ) -> None:  # fmt: skip
        topology = Topology(
            name="funnel", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=senders + 1, evs_per_qp=8,
            reserve_evs_per_qp=0, mtu_bytes=mtu, nic={"transport": "rc", **nic},
        )  # fmt: skip
        self.rate_bps = rate_bps
        self._red = kmin, kmax, pmax_ppm
        self.nics: list[Nic] = []
        for index in range(senders + 1):
            config = nic_config(topology, f"h{index:03d}")
            port = replace(config.ports[0], rate_bps=rate_bps, delay_ns=DELAY_NS)
            self.nics.append(Nic(replace(config, ports=(port,))))
        self.now = 0
        self._frames: list[list[Input]] = [[] for _ in self.nics]
        self._sequence = 0
        self._rng = Rng("funnel")
        self._waiting: list[tuple[int, int, bytearray]] = []
        """(arrival, sequence, packet) before the queue's wire."""
        self._free_ns = 0
        self.depth = 0
        """Bytes that waited when the last packet started."""
        self.depth_sum = self.depth_count = 0
        self.carried = 0
        """Bytes on the wire of the queue, overhead included."""
        source = memoryview(bytearray(length))
        self._input(0, 1, RegisterMemory(0, 0x1000, length, 1, 7))
        for index in range(1, senders + 1):
            self._input(index, 1, RegisterMemory(0, 0x1000, length, 1, 7, source))
            for node, qpn, peer, peer_qpn in ((0, 200 + index, index, 100), (index, 100, 0, 200 + index)):
                self._input(node, 2, CreateQp(0, qpn))
                self._input(node, 2, ConnectQp(0, qpn, peer, peer_qpn, 1, 1))
                self._input(node, 2, ModifyQp(0, qpn, "rts"))
            for number in range(messages):
                self._input(index, starts[index - 1] + 10, PostWrite(0, 100, number, 1, 0x1000, length, 0x1000, 7))

    def _input(self, node: int, at_ns: int, body: Any, rank: Rank = Rank.COMMAND) -> None:
        self._sequence += 1
        heappush(self._frames[node], Input(at_ns, int(rank), 0, self._sequence, body))

    def run(self, until_ns: int) -> None:
        """Everything up to `until_ns`, in steps of a link's delay."""
        while self.now < until_ns:
            upto = min(until_ns, self.now + DELAY_NS)
            for node, nic in enumerate(self.nics):
                inputs = []
                frames = self._frames[node]
                while frames and frames[0].at_ns <= upto:
                    inputs.append(heappop(frames))
                for sent in nic.advance(inputs, upto):
                    self._sequence += 1
                    if node:
                        heappush(self._waiting, (sent[1], self._sequence, bytearray(sent[2])))
                    else:
                        peer = nic_of_address(bytes(sent[2][24:40]))
                        assert peer is not None
                        self._input(peer, sent[1], sent[2], Rank.FRAME)
                nic.drain_events()
            self._serve(upto)
            self.now = upto

    def _serve(self, upto: int) -> None:
        """Let packets leave that may start up to `upto`."""
        kmin, kmax, pmax = self._red
        while self._waiting:
            start = max(self._free_ns, self._waiting[0][0])
            if start > upto:
                return
            _, _, packet = heappop(self._waiting)
            depth = sum(len(other[2]) for other in self._waiting if other[0] <= start)
            self.depth = depth
            self.depth_sum += depth
            self.depth_count += 1
            chance = 0 if depth <= kmin else PPM if depth >= kmax else pmax * (depth - kmin) // (kmax - kmin)
            if ecn_of(packet) == ECT_0 and self._rng.chance(chance):
                mark_ce(packet)
                assert ecn_of(packet) == CE
            size = len(packet) + OVERHEAD
            self.carried += size
            self._free_ns = start - (-size * 8 * 1_000_000_000 // self.rate_bps)
            self._input(0, self._free_ns + DELAY_NS, packet, Rank.FRAME)

    def pace(self, sender: int) -> Pace:
        """The rate control of a sender (1 on)."""
        link = self.nics[sender]._transport.find(100).link
        assert isinstance(link, RcLink)
        return link.windows

    def rates(self) -> list[int]:
        """What all senders' rates are now."""
        return [self.pace(sender).rate_bps for sender in range(1, len(self.nics))]


def jain(rates: list[int]) -> float:
    """Jain's index of fairness."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
