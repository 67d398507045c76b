"""What came of a trial, as plain numbers: flows, counters of NICs and switches, and the arithmetic on them.

Owns which counters are kept and how rates, shares and fairness are computed. Rates count payload; a share is of what
the ports named can carry of payload at line rate, headers paid.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import NS_PER_S, Instant
from orchestrator.sim.fabric import SimulatedFabric

_SUMMED = ("data_packets", "packets_lost", "taken_back", "ev_skips", "ev_replacements", "qp_errors", "probes_sent",
           "tail_probes", "ecn_marks", "duplicates", "nacks_sent", "sacks_sent", "bytes_placed")  # fmt: skip
_SWITCH_SUMMED = ("marks", "trim_admitted", "trim_dropped")
RETIRED = "assumed_bad:"
"""Transitions whose name begins so took an EV out of use."""


@dataclass(slots=True)
class FlowResult:
    """One flow's end."""

    group: str
    source: int
    target: int
    start_ns: Instant
    done_ns: Instant | None = None
    """When its last message completed; None: not all did."""
    bytes_done: int = 0
    """Of messages that completed."""
    failed: int = 0
    """Messages that ended with an error."""
    window_bytes: int = 0
    """Delivered inside the trial's window."""
    samples: list[int] = field(default_factory=list)
    """Delivered until each sampling instant, where the trial keeps that."""

    @property
    def time_ns(self) -> Instant | None:
        """From its start to its last completion."""
        return None if self.done_ns is None else self.done_ns - self.start_ns


@dataclass(slots=True)
class Outcome:
    """All flows and the sums over the fabric."""

    end_ns: Instant
    flows: list[FlowResult]
    nics: dict[str, int]
    """Counters summed over NICs, by name."""
    retransmits: dict[str, int]
    """By cause."""
    trims: dict[str, int]
    """Trimmed packets that reached a NIC: `path`, `last_hop`."""
    retired: int
    """Entries of EVs into ASSUMED_BAD."""
    switches: dict[str, int]
    drops: dict[str, int]
    """Packets that switches dropped, or lost on the link behind them, by reason; reasons without any are left out."""
    rtt_mean_ns: int
    rtt_max_ns: int
    first_retired_ns: Instant | None = None
    """When the first EV went into ASSUMED_BAD."""
    before: "Outcome | None" = None
    """The same as the trial's window began, where it has one."""
    timeline: list[int] = field(default_factory=list)
    """Bytes placed in all NICs until each sampling instant."""

    def group(self, name: str) -> list[FlowResult]:
        """The flows of a group."""
        return [flow for flow in self.flows if flow.group == name]

    @property
    def resent(self) -> int:
        return sum(self.retransmits.values())

    def last_ns(self) -> Instant | None:
        """From the first start to the last completion; None when a flow has not completed."""
        ends = [flow.done_ns for flow in self.flows if flow.done_ns is not None]
        if len(ends) < len(self.flows):
            return None
        return max(ends) - min(flow.start_ns for flow in self.flows)


def collect(fabric: SimulatedFabric, flows: list[FlowResult]) -> Outcome:
    """What the cores of a fabric have counted; dead nodes are left out."""
    nics: dict[str, int] = dict.fromkeys(_SUMMED, 0)
    switches: dict[str, int] = dict.fromkeys(_SWITCH_SUMMED, 0)
    retransmits: dict[str, int] = {}
    trims: dict[str, int] = {}
    drops: dict[str, int] = {}
    retired = rtt_count = rtt_sum = rtt_max = 0
    for name in fabric.topology.node_names():
        if not fabric.simulator.alive(name):
            continue
        counters = fabric.counters(name)
        if fabric.topology.parse_node(name).tier != "nic":
            _add(switches, {key: counters[key] for key in _SWITCH_SUMMED})
            _add(drops, counters["drops"])
            continue
        _add(nics, {key: counters[key] for key in _SUMMED})
        _add(retransmits, counters["retransmits"])
        _add(trims, counters["trims"])
        transitions = counters["ev_transitions"]
        retired += sum(count for key, count in transitions.items() if key.startswith(RETIRED))
        rtt_count += counters["rtt_count"]
        rtt_sum += counters["rtt_sum_ns"]
        rtt_max = max(rtt_max, counters["rtt_max_ns"])
    return Outcome(
        fabric.now_ns, flows, nics, retransmits, trims, retired, switches,
        {reason: count for reason, count in drops.items() if count}, rtt_sum // max(1, rtt_count), rtt_max,
    )  # fmt: skip


def _add(sums: dict[str, int], more: dict[str, Any]) -> None:
    for key, value in more.items():
        sums[key] = sums.get(key, 0) + value


def payload_bps(topology: Topology, ports: float = 0) -> float:
    """Payload that `ports` ports carry at line rate with full packets; 0: all ports of one NIC."""
    full = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES
    return topology.rate_bps * (ports or topology.planes) * topology.mtu_bytes / full


def rate_bps(size: int, time_ns: Instant | None) -> float:
    """Bytes over a time; 0 for a time that never ended."""
    return size * 8 * NS_PER_S / time_ns if time_ns else 0.0


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 when all are equal, 1/n when one has everything. 0 without anything."""
    square = sum(values) ** 2
    return square / (len(values) * sum(value * value for value in values)) if square else 0.0


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
