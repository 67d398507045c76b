"""The demo's fabric in virtual time: data packets that the simulator carries per CPU second, with MRC and with RoCE.

Eight NICs in a permutation in which every flow crosses the T1s, all 48 switches, real cores throughout: every packet is
built, queued, forwarded three times, checked, placed and acknowledged. Each NIC keeps a few messages posted, so that
its ports never rest. At the end every byte is compared, and the run must have been free of losses.
"""

import hashlib
import time
from typing import Any

from bench.measure import Figure, rounded
from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import Completion
from nicd.core.nic import Nic
from switchd.compose import switch_config
from switchd.core.build import build_switch

MESSAGE_BYTES = 1 << 20
MESSAGES_POSTED = 4
"""Per NIC, at any time; each has its own piece of the regions."""
RUNS = 5
RUN_S = 1.2
SLICE_NS = 20_000
READY_NS = 1_000
WARM_UP_NS = 200_000
_SOURCE, _TARGET, _R_KEY = 1, 2, 0x5EED
_SENDING, _RECEIVING = 16, 17
_VA = 1 << 32


def permutation(topology: Topology) -> list[int]:
    """Whom each NIC sends to: somebody below another T0, never the one it receives from."""
    below = topology.nics_per_t0
    return [
        (nic + below) % topology.nics if nic // below % 2 == 0 else (nic - below) // below * below + (nic + 1) % below
        for nic in range(topology.nics)
    ]


class Fabric:
    """All cores of a topology in the simulator, and the traffic of the permutation."""

    def __init__(self, topology: Topology) -> None:
        nics = list(topology.nic_names())
        nodes: dict[str, Any] = {name: Nic(nic_config(topology, name)) for name in nics}
        nodes |= {name: build_switch(switch_config(topology, name)) for name in topology.switch_names()}
        links = {(name, end.port): (end.peer, end.peer_port) for name in nodes for end in topology.ports(name)}
        self.simulator = Simulator(nodes, links, window_ns=topology.link_delay_ns, on_events=self._on_events)
        self.nics = [self._nic(name) for name in nics]
        self._names = nics
        self._peers = permutation(topology)
        self._gap_ns = topology.link_delay_ns
        self._posted = dict.fromkeys(nics, 0)
        self._open = True
        self.failed = 0
        for nic, name in enumerate(nics):
            self._set_up(nic, name)
        self.simulator.run(READY_NS)
        for name in nics:
            for _ in range(MESSAGES_POSTED):
                self._post(name, READY_NS + 1)

    def _nic(self, name: str) -> Nic:
        node = self.simulator.node(name)
        assert isinstance(node, Nic)
        return node

    def _set_up(self, nic: int, name: str) -> None:
        command = self.simulator.command
        size = MESSAGE_BYTES * MESSAGES_POSTED
        command(name, 1, RegisterMemory(0, _VA, size, _SOURCE, 1, memoryview(pattern(nic, size))))
        command(name, 1, RegisterMemory(0, _VA, size, _TARGET, _R_KEY))
        for qpn, peer, peer_qpn in (
            (_SENDING, self._peers[nic], _RECEIVING),
            (_RECEIVING, self._peers.index(nic), _SENDING),
        ):
            command(name, 2, CreateQp(0, qpn))
            command(name, 3, ConnectQp(0, qpn, peer, peer_qpn, 0, 0))
            command(name, READY_NS, ModifyQp(0, qpn, "rts"))

    def _post(self, name: str, at_ns: int) -> None:
        number = self._posted[name]
        self._posted[name] += 1
        va = _VA + number % MESSAGES_POSTED * MESSAGE_BYTES
        self.simulator.command(name, at_ns, PostWrite(0, _SENDING, number, _SOURCE, va, MESSAGE_BYTES, va, _R_KEY))

    def _on_events(self, name: str, events: list[Any]) -> None:
        for event in events:
            if isinstance(event, Completion):
                self.failed += event.status != "ok"
                if self._open:
                    self._post(name, event.at_ns + self._gap_ns)
            elif getattr(event, "error", None):
                raise RuntimeError(f"{name}: {event.error}")

    def data_packets(self) -> int:
        return sum(int(nic.counters()["data_packets"]) for nic in self.nics)

    def close(self) -> None:
        """Post nothing more, let everything arrive, and compare every byte. Raises RuntimeError."""
        self._open = False
        now_ns = self.simulator.now_ns
        if not self.simulator.run_until(self._all_done, now_ns + 100 * WARM_UP_NS, WARM_UP_NS):
            raise RuntimeError("messages are left unfinished")
        for nic, peer in enumerate(self._peers):
            arrived = self.nics[peer].region_bytes(_TARGET)
            if hashlib.sha256(arrived).digest() != hashlib.sha256(pattern(nic, len(arrived))).digest():
                raise RuntimeError(f"{self._names[peer]} holds wrong bytes")

    def _all_done(self) -> bool:
        return sum(int(nic.counters()["completions"]) for nic in self.nics) >= sum(self._posted.values())

    def totals(self) -> dict[str, int]:
        """What a healthy fabric must not show: all zero."""
        counters = [nic.counters() for nic in self.nics]
        return {
            "retransmits": sum(sum(count["retransmits"].values()) for count in counters),
            "qp_errors": sum(count["qp_errors"] for count in counters),
            "failed_messages": self.failed,
        }


def pattern(nic: int, size: int) -> bytearray:
    """Bytes of one NIC's own, which do not repeat in step with packets or messages."""
    return bytearray((hashlib.shake_256(nic.to_bytes(4, "big")).digest(65_521) * (size // 65_521 + 1))[:size])


def _packets_per_cpu_second(fabric: Fabric, seconds: float) -> tuple[float, int]:
    """(data packets, fabric ns) per CPU second, over at least `seconds` of CPU."""
    packets, fabric_ns = fabric.data_packets(), fabric.simulator.now_ns
    started_s = time.process_time()
    while (spent_s := time.process_time() - started_s) < seconds:
        fabric.simulator.run(fabric.simulator.now_ns + SLICE_NS)
    return (fabric.data_packets() - packets) / spent_s, int((fabric.simulator.now_ns - fabric_ns) / spent_s)


def _measured(topology: Topology) -> tuple[Figure, float, dict[str, int]]:
    """Data packets per CPU second, fabric nanoseconds per CPU second, and what must be zero."""
    fabric = Fabric(topology)
    fabric.simulator.run(WARM_UP_NS)
    runs = [_packets_per_cpu_second(fabric, RUN_S) for _ in range(RUNS)]
    fabric.close()
    figure = Figure(tuple(rate for rate, _ in runs))
    return figure, Figure(tuple(float(ns) for _, ns in runs)).median, fabric.totals()


def run() -> dict[str, Any]:
    """Section `sim`: data packets per CPU second, and what they amount to in fabric time; the packets of RoCE, too."""
    topology = Topology.demo()
    figure, fabric_ns_per_s, totals = _measured(topology)
    roce, _, roce_totals = _measured(with_system(topology, "roce"))
    line_rate_pps = topology.nics * topology.planes * topology.rate_bps / topology.mtu_bytes / 8
    return {
        "pps": rounded(figure.median),
        "dilation": rounded(1e9 / fabric_ns_per_s),
        "line_rate_share": rounded(figure.median / fabric_ns_per_s * 1e9 / line_rate_pps),
        "roce_pps": rounded(roce.median),
        "roce_share": rounded(roce.median / figure.median),
        **{name: count + roce_totals[name] for name, count in totals.items()},
        "detail": {"pps": figure.record(), "roce_pps": roce.record()},
    }
