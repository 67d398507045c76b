"""Flows that got less than they were due although nothing of theirs was at fault: how much each one got of it.

What a flow is due is its max-min share of the capacity that faults left (`orchestrator.measures.optimum`). A flow of a
transport that keeps a QP on one port is due no more than the ports of its QPs carry: the rest is no congestion's fault.
Only flows that always have something to send can be judged: those of `STREAMS` without a gap between messages.
"""

from typing import Final

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import NS_PER_S
from nicd.programs.program import Program
from orchestrator.measures.measure import Question
from orchestrator.measures.optimum import max_min
from orchestrator.measures.rates import flow_lives, flow_part
from orchestrator.measures.recording import Recording
from orchestrator.measures.spans import work

STREAMS: Final = ("p2p", "permutation", "incast")
"""Kinds of workloads whose flows send all the time."""
FLOWS_MAX: Final = 256
"""With more flows nothing is told: shares of thousands of flows take longer than the run."""
VICTIM_SHARE: Final = 0.8
"""A flow with less than this part of what it was due is a victim."""
ONE_PORT: Final = ("rc",)
"""Transports that keep a QP on one port."""


def parts_of_due(recording: Recording, programs: tuple[Program, ...]) -> dict[str, float]:
    """Flow -> what it placed of what it was due, at most 1; empty where no flow can be judged."""
    judged = {one.name: one for one in programs if one.kind in STREAMS and not one.figures.get("gap_ns")}
    lives = flow_lives(recording)
    flows = [flow for flow in lives if flow.partition(":")[0] in judged]
    if not flows or len(lives) > FLOWS_MAX:
        return {}
    window = work(recording)
    question = Question(recording, ("*:*",), (window,))
    shares = {figure.of: figure.value for figure in max_min(question)}
    found = {}
    for flow in flows:
        part, share = flow_part(question, flow, lives[flow], window), shares.get(flow)
        if part is None or share is None:
            continue
        most = _ports_bps(recording.topology, judged[flow.partition(":")[0]].qps)
        bearable = most * (part.end_ns - part.start_ns) / (8 * NS_PER_S)
        found[flow] = min(1.0, max(share, part.size / bearable))
    return found


def victims(parts: dict[str, float]) -> list[str]:
    """Those of the flows that got too little, the worst first."""
    return sorted((flow for flow, part in parts.items() if part < VICTIM_SHARE), key=lambda flow: parts[flow])


def _ports_bps(topology: Topology, qps: int) -> float:
    """Payload that the ports of a flow's QPs carry."""
    ports = topology.planes
    if topology.nic.get("transport") in ONE_PORT:
        ports = min(ports, qps)
    full = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES
    return ports * topology.rate_bps * topology.mtu_bytes / full
