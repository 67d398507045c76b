"""Measures goodput against the size of a NIC's on-chip memory, in virtual time, and compares it with a formula.

Owns one experiment that works in rounds, as collectives do. In each round every QP of a NIC sends a burst to another
NIC, and the next round begins when all bursts are complete. QPs whose context is on the chip send at once. The others
wait until their context is fetched. So a round costs one fetch for each QP that does not fit, and some more for
acknowledgements whose QP was spilled meanwhile. A burst of several packets hides part of that behind the line.

`nicd.core.onchip` has the model, the footprint of each transport the sizes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import NS_PER_S, Instant
from nicd.compose import nic_settings
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import STATUS_OK, WRITE, Completion
from nicd.core.transports import resident_max, slot_bytes
from orchestrator.sim.fabric import SimulatedFabric

SENDER, RECEIVER = "h000", "h001"
PAIR_FLAGS = (
    "name=chip", "planes=2", "t0_per_plane=1", "t1_per_plane=1", "nics_per_t0=2", "evs_per_qp=16",
    "reserve_evs_per_qp=8",
)  # fmt: skip
"""The smallest fabric with two NICs on one T0, as settings of a topology."""
CAPACITY_SHARES = (100, 75, 50, 25, 6)
"""How many contexts fit, in per cent of the QPs, at the points worth measuring."""
_READY_NS = 1_000
_REGION, _R_KEY, _VA = 1, 7, 0x1000
_FIRST_QPN = 100
_ROUND_NS_MAX = 100_000_000


class Point(NamedTuple):
    """One size of memory, what was measured with it, and what the formula predicts. Rates in bits/s of payload."""

    sram_bytes: int
    capacity: int
    """How many contexts fit; the number of QPs when the memory is unlimited."""
    resident: int
    spilled: int
    goodput_bps: int
    predicted_bps: int
    hit_share: float
    """The share of the sender's packets that found their context on the chip; 1 when the memory is unlimited."""
    misses: int
    evictions: int
    retransmits: int


def round_ns(topology: Topology, qps: int, capacity: int, message_bytes: int, burst: int) -> int:
    """How long a round takes, in ns: the line or the fetches, whichever takes longer, plus one round trip.

    With fewer contexts than QPs, those QPs that do not fit are fetched to send. Acknowledgements come a round trip
    later. If more contexts are fetched in that time than fit, all acknowledgements miss; otherwise as many miss as were
    fetched. The sending NIC is the bottleneck: the receiving one looks up less. With room for only a handful of
    contexts the real NIC is slower than this: a context can be driven out between the acknowledgements of one packet.
    """
    knobs = nic_settings(topology)
    packets = -(-message_bytes // topology.mtu_bytes)
    wire = message_bytes + packets * (DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES)
    rtt_ns = topology.base_rtt_ns(same_t0=True)
    busy_ns = qps * burst * wire * 8 * NS_PER_S // (topology.planes * topology.rate_bps)
    if capacity < qps:
        fetched = rtt_ns * knobs.sram_fetches // knobs.sram_miss_ns
        misses = qps - capacity + (qps if capacity <= fetched else fetched)
        busy_ns = max(busy_ns, misses * knobs.sram_miss_ns // knobs.sram_fetches)
    return busy_ns + rtt_ns


def sweep(
    topology: Topology,
    capacities: Sequence[int],
    *,
    qps: int = 64,
    message_bytes: int | None = None,
    burst: int = 1,
    rounds: int = 6,
) -> list[Point]:
    """Measure one point for each entry of `capacities` (contexts that fit on the chip, 0: unlimited), in that order.

    `message_bytes` is one packet by default; every QP sends `burst` messages in a round. The first round does not
    count, because it fetches every context for the first time. The topology needs two NICs on one T0. Raises
    ConfigError.
    """
    size = message_bytes or topology.mtu_bytes
    return [_point(_with_capacity(topology, one), qps, size, burst, rounds) for one in capacities]


def _with_capacity(topology: Topology, capacity: int) -> Topology:
    slot = slot_bytes(nic_settings(topology), topology.planes)
    return replace(topology, nic={**topology.nic, "sram_bytes": capacity * slot})


def _point(topology: Topology, qps: int, size: int, burst: int, rounds: int) -> Point:
    knobs = nic_settings(topology)
    experiment = _Rounds(topology, qps, size, burst, rounds)
    took_ns = experiment.run()
    counters = experiment.fabric.counters(SENDER)
    contexts = counters["contexts"]
    capacity = resident_max(knobs, topology.planes) or qps
    seen = contexts["hits"] + contexts["misses"] + contexts["waits"]
    bits = qps * burst * size * 8 * NS_PER_S
    return Point(
        sram_bytes=knobs.sram_bytes,
        capacity=capacity,
        resident=contexts["resident"] if knobs.sram_bytes else qps,
        spilled=contexts["spilled"],
        goodput_bps=bits * (rounds - 1) // took_ns,
        predicted_bps=bits // round_ns(topology, qps, capacity, size, burst),
        hit_share=contexts["hits"] / seen if seen else 1.0,
        misses=contexts["misses"],
        evictions=contexts["evictions"],
        retransmits=sum(counters["retransmits"].values()),
    )


class _Rounds:
    """The QPs and their work; posts each round when the one before is complete."""

    def __init__(self, topology: Topology, qps: int, size: int, burst: int, rounds: int) -> None:
        self._qps = qps
        self._size = size
        self._burst = burst
        self._rounds = rounds
        self._open = 0
        self._starts: list[Instant] = []
        self._pause_ns = topology.link_delay_ns
        self.fabric = SimulatedFabric(topology, on_events=self._on_events)
        command = self.fabric.simulator.command
        for nic in (SENDER, RECEIVER):
            command(nic, 1, RegisterMemory(0, _VA, qps * size, _REGION, _R_KEY))
        for number in range(qps):
            for nic, peer in ((SENDER, 1), (RECEIVER, 0)):
                qpn = _FIRST_QPN + number
                command(nic, 2, CreateQp(0, qpn))
                command(nic, 3, ConnectQp(0, qpn, peer, qpn, 0, 0))
                command(nic, 4, ModifyQp(0, qpn, "rts"))
        self._begin(_READY_NS)

    def run(self) -> int:
        """Run all rounds. Returns the ns from the start of the second round to the end of the last, without pauses."""
        deadline_ns = _READY_NS + _ROUND_NS_MAX * self._rounds
        done = self.fabric.simulator.run_until(lambda: len(self._starts) > self._rounds, deadline_ns, 10_000)
        assert done, "rounds come to their end"
        return self._starts[-1] - self._starts[1] - (self._rounds - 1) * self._pause_ns

    def _begin(self, at_ns: Instant) -> None:
        self._starts.append(at_ns)
        if len(self._starts) > self._rounds:
            return
        self._open = self._qps * self._burst
        for number in range(self._qps):
            place = _VA + number * self._size
            work = PostWrite(0, _FIRST_QPN + number, number, _REGION, place, self._size, place, _R_KEY)
            for _ in range(self._burst):
                self.fabric.simulator.command(SENDER, at_ns, work)

    def _on_events(self, node: str, events: list[Any]) -> None:
        for event in events:
            if isinstance(event, Completion) and event.opcode == WRITE and event.status == STATUS_OK:
                self._open -= 1
                if not self._open:
                    # The simulator takes a command one window later at the earliest.
                    self._begin(event.at_ns + self._pause_ns)
