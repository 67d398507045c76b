"""How far a run is from max-min: what flows placed, compared with their shares of the capacity that faults left.

Owns the capacity of every link at every instant under the faults of a run: dark links and dead or frozen switches carry
nothing, slow links carry their lowered rate, and of what lossy links carry a part arrives; what the probes of NICs take
of a link is left out. `mrcfabric.max_min` computes the shares. Every flow counts as always having something to send,
from its first instant to its last.
"""

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.impairment import Impairment
from mrcfabric.max_min import Arrival, Capacity, fulfilled, shares
from mrcfabric.rng import PPM
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import Instant
from orchestrator.faults.checks import DEADLY
from orchestrator.faults.effects import Aspect, effects
from orchestrator.measures.measure import Figure, Question, matching
from orchestrator.measures.probe_load import probe_rates
from orchestrator.measures.rates import flow_lives, flow_part
from orchestrator.measures.recording import Injected, Recording
from orchestrator.measures.spans import Interval

SEGMENTS_MAX = 256
"""Intervals per window between changes of flows and faults. With more, only every n-th change counts."""


class _Limit(NamedTuple):
    """The capacity that a fault leaves while it is in force: none at the links of `dead` nodes, less on `links`."""

    injected: Injected
    dead: frozenset[str]
    links: Mapping[int, Mapping[tuple[str, str], Impairment]]
    """By number of the fault's window; a link is (node, next node)."""


def max_min(question: Question) -> list[Figure]:
    """What flows placed as a share of their max-min shares: all together, those of a program, or one by one."""
    recording = question.recording
    lives = flow_lives(recording)
    programs = sorted({name.partition(":")[0] for name in lives})
    limits = [_limit(recording.topology, injected) for injected in recording.faults]
    found = []
    for window in question.windows:
        parts = {name: part for name, life in lives.items() if (part := flow_part(question, name, life, window))}
        due = _due(recording, {name: Interval(part.start_ns, part.end_ns) for name, part in parts.items()}, limits)
        for name in matching(question.of, [*programs, *parts]):
            mine = [flow for flow in parts if name in ("", flow, flow.partition(":")[0])]
            if mine and any(due[flow] for flow in mine):
                whole, _ = fulfilled([float(parts[flow].size) for flow in mine], [due[flow] for flow in mine])
                found.append(Figure(whole, name, *window))
    return found


def _due(recording: Recording, flows: Mapping[str, Interval], limits: list[_Limit]) -> dict[str, Fraction]:
    """Flow -> payload bytes of its max-min share while it lasted."""
    due = dict.fromkeys(flows, Fraction(0))
    for segment in _segments(flows, limits):
        there = [flow for flow, life in flows.items() if life.start_ns <= segment.start_ns < life.end_ns]
        ends = [_ends(recording.topology, flow) for flow in there]
        given = shares(recording.topology, ends, *_left(recording, limits, segment.start_ns))
        for flow, share in zip(there, given, strict=True):
            # bit/s times ns, in bytes.
            due[flow] += share * (segment.end_ns - segment.start_ns) / (8 * 10**9)
    return due


def _segments(flows: Mapping[str, Interval], limits: list[_Limit]) -> list[Interval]:
    """The time of the flows, cut where a flow begins or ends and where a fault changes."""
    if not flows:
        return []
    begin, end = min(life.start_ns for life in flows.values()), max(life.end_ns for life in flows.values())
    cuts = {begin, end} | {edge for life in flows.values() for edge in life}
    for limit in limits:
        over_ns = limit.injected.over_ns
        cuts |= {min(edge, over_ns) for window in limit.injected.fault.windows for edge in window[:2]}
    inside = sorted(cut for cut in cuts if begin <= cut <= end)
    every = -(-len(inside) // SEGMENTS_MAX)
    inside = [*inside[:-1:every], inside[-1]]
    return [Interval(start, stop) for start, stop in pairwise(inside) if start < stop]


def _ends(topology: Topology, flow: str) -> tuple[int, int]:
    sender, _, receiver = flow.partition(":")[2].partition(">")
    return topology.nic_index(sender), topology.nic_index(receiver)


def _limit(topology: Topology, injected: Injected) -> _Limit:
    fault = injected.fault
    if fault.kind in DEADLY:
        return _Limit(injected, frozenset(fault.struck), {})
    links: dict[int, dict[tuple[str, str], Impairment]] = {}
    frozen = set()
    for number, window in enumerate(fault.windows):
        for spot, state in effects(topology, fault.kind, fault.struck, window.figures).items():
            if spot.aspect is Aspect.IMPAIRMENT:
                peer = topology.ports(spot.node)[spot.port].peer
                links.setdefault(number, {})[spot.node, peer] = state
            elif spot.aspect is Aspect.FORWARDING:
                frozen.add(spot.node)
    return _Limit(injected, frozenset(frozen), links)


def _left(recording: Recording, limits: list[_Limit], at_ns: Instant) -> tuple[Capacity, Arrival]:
    """Of each direction of a link at an instant: the payload that it sends, in bit/s, and which part of it arrives."""
    topology = recording.topology
    of_nics, of_t1s = probe_rates(topology, recording.probe_period_ns)
    dead: set[str] = set()
    impaired: dict[tuple[str, str], list[Impairment]] = {}
    for limit in limits:
        for number, window in enumerate(limit.injected.fault.windows):
            if window.start_ns <= at_ns < min(window.end_ns, limit.injected.over_ns):
                dead |= limit.dead
                for link, state in limit.links.get(number, {}).items():
                    impaired.setdefault(link, []).append(state)
    full = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES
    tiers = {node: topology.parse_node(node).tier for node in topology.node_names()}
    rates = {(node, end.peer): end.rate_bps for node in topology.node_names() for end in topology.ports(node)}

    def capacity(node: str, peer: str) -> int:
        if node in dead or peer in dead:
            return 0
        rate = rates[node, peer]
        for state in impaired.get((node, peer), ()):
            if not state.up:
                return 0
            rate = min(rate, state.rate_bps or rate)
        probes = of_nics if "nic" in (tiers[node], tiers[peer]) else of_t1s
        return max(0, int((rate - probes) * topology.mtu_bytes / full))

    def arrival(node: str, peer: str) -> Fraction:
        part = Fraction(1)
        for state in impaired.get((node, peer), ()):
            for lost_ppm in (state.loss_ppm, state.gray_ppm, state.corruption_ppm):
                part *= 1 - Fraction(lost_ppm, PPM)
        return part

    return capacity, arrival
