"""Measures of rates: goodput of the fabric, of NICs, planes, programs and flows, and how evenly it is spread.

Bytes count when they are written to memory. NICs and planes are measured from whole bins, flows and programs from
looks. Line rate is that of all ports of a NIC, headers included: 4096-byte packets leave 0.96 of it for goodput. A
packet counts with its last byte. So a window may count one packet per port that began to arrive before it; such an
excess over the payload that the line can carry is cut off.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES
from mrcfabric.units import NS_PER_S, Instant
from orchestrator.measures.counts import look_after, look_at
from orchestrator.measures.measure import Figure, Question, matching
from orchestrator.measures.recording import Recording
from orchestrator.measures.spans import Interval, work


def nic_line_bps(recording: Recording) -> int:
    """The line rate of one NIC: all its ports."""
    return recording.topology.planes * recording.topology.rate_bps


def receivers(recording: Recording) -> list[str]:
    """The NICs that received anything, in order: the fabric's goodput is a share of their line rate."""
    return sorted(nic for nic, bins in recording.goodput.by_nic.items() if any(bins.values()))


def goodput(question: Question) -> list[Figure]:
    """Bytes newly placed per time: of NICs, planes, programs and flows; without names, into all NICs."""
    recording = question.recording
    nics = list(recording.topology.nic_names())
    planes = [str(plane) for plane in range(recording.topology.planes)]
    placed = matching(question.of, nics + planes)
    found = []
    for window in question.windows:
        found += [figure for name in placed if (figure := _placed(recording, name, window)) is not None]
    if question.of:
        lives = flow_lives(recording)
        programs = sorted({name.partition(":")[0] for name in lives})
        for name in matching(question.of, [*programs, *lives]):
            found += _of_flows(question, name, lives)
    return found


def _placed(recording: Recording, name: str, window: Interval) -> Figure | None:
    """The goodput of the fabric (""), a NIC or a plane; None when the window holds no whole bin."""
    bins, topology = recording.goodput, recording.topology
    starts = bins.whole_bins(*window)
    if not starts:
        return None
    if name.isdigit():
        size = bins.by_planes(starts)[int(name)]
        line = len(receivers(recording)) * topology.rate_bps
    elif name:
        mine = bins.by_nic.get(name, {})
        size = sum(mine.get(start, 0) for start in starts)
        line = nic_line_bps(recording)
    else:
        size = sum(sum(bins.by_plane.get(start, ())) for start in starts)
        line = len(receivers(recording)) * nic_line_bps(recording)
    width = len(starts) * bins.bin_ns
    return Figure(_rate_bps(recording, size, width, line), name, starts[0], starts[0] + width, line)


def _rate_bps(recording: Recording, size: int, width_ns: int, line_bps: float) -> float:
    """Bytes over a time, in bit/s. If one packet per port explains an excess over `line_bps`, the excess is cut off."""
    topology = recording.topology
    mtu = topology.mtu_bytes
    payload_bps = line_bps * mtu / (mtu + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES)
    rate = size * 8 * NS_PER_S / width_ns
    under_way = line_bps / topology.rate_bps * mtu * 8 * NS_PER_S / width_ns
    return payload_bps if payload_bps < rate <= payload_bps + under_way else rate


def flow_lives(recording: Recording) -> dict[str, Interval]:
    """Every flow, and when it lasted: until its last message, or until now when more should come."""
    everything = work(recording)
    lives = {name: everything for look in recording.looks[-1:] for name in look.placed}
    for program in recording.programs:
        for rank in program.ranks:
            for sender, record in rank.flows.items():
                end = record["last_ns"] if rank.state == "done" else everything.end_ns
                lives[f"{program.name}:{sender}>{rank.nic}"] = Interval(max(rank.begin_ns, everything.start_ns), end)
    return dict(sorted(lives.items()))


def _of_flows(question: Question, name: str, lives: dict[str, Interval]) -> list[Figure]:
    """The goodput of a flow, or of all flows of a program together, while any of them lasted."""
    flows = [flow for flow in lives if name in (flow, flow.partition(":")[0])]
    line = float(nic_line_bps(question.recording)) * len({flow.partition(">")[2] for flow in flows})
    found = []
    for window in question.windows:
        parts = [part for flow in flows if (part := flow_part(question, flow, lives[flow], window)) is not None]
        if parts:
            start, end = min(part.start_ns for part in parts), max(part.end_ns for part in parts)
            size = sum(part.size for part in parts)
            found.append(Figure(_rate_bps(question.recording, size, end - start, line), name, start, end, line))
    return found


class Part(NamedTuple):
    """The bytes that a flow placed in a window, while it lasted."""

    start_ns: Instant
    end_ns: Instant
    size: int

    @property
    def rate_bps(self) -> float:
        return self.size * 8 * NS_PER_S / (self.end_ns - self.start_ns)


def flow_part(question: Question, flow: str, life: Interval, window: Interval) -> Part | None:
    """The bytes that a flow placed within a window while it lasted; None when it did not last there."""
    recording = question.recording
    first = look_at(recording, max(window.start_ns, life.start_ns))
    last = (look_at if question.binned else look_after)(recording, min(window.end_ns, life.end_ns))
    if last is None:
        return None
    start = max(life.start_ns, 0 if first is None else first.at_ns)
    end = min(life.end_ns, last.at_ns)
    if start >= end or end <= window.start_ns or start >= window.end_ns:
        return None
    return Part(start, end, last.placed.get(flow, 0) - (0 if first is None else first.placed.get(flow, 0)))


def fairness(question: Question) -> list[Figure]:
    """Jain's index over the rates of flows: 1 when all have the same, 1/n when one of n has everything."""
    lives = flow_lives(question.recording)
    chosen = [flow for flow in lives if not question.of or _is_meant(flow, question.of)]
    found = []
    for window in question.windows:
        parts = [part for flow in chosen if (part := flow_part(question, flow, lives[flow], window)) is not None]
        index = jain([part.rate_bps for part in parts])
        if index is not None:
            found.append(Figure(index, ", ".join(question.of), window.start_ns, window.end_ns))
    return found


def _is_meant(flow: str, patterns: Sequence[str]) -> bool:
    return bool(matching(patterns, (flow, flow.partition(":")[0])))


def jain(rates: Sequence[float]) -> float | None:
    """Jain's fairness index; None when all rates are 0."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def plane_balance(question: Question) -> list[Figure]:
    """The least used plane as a share of the mean, 1 when all are even: of placed bytes, or of one NIC's packets."""
    placed = question.recording.goodput
    found = []
    for window in question.windows:
        for name in matching(question.of, question.recording.topology.nic_names()):
            loads = _port_loads(question, name, window) if name else placed.by_planes(placed.whole_bins(*window))
            if sum(loads):
                balance = min(loads) * len(loads) / sum(loads)
                found.append(Figure(balance, name, window.start_ns, window.end_ns))
    return found


def _port_loads(question: Question, nic: str, window: Interval) -> list[int]:
    first = look_at(question.recording, window.start_ns)
    last = (look_at if question.binned else look_after)(question.recording, window.end_ns)
    if last is None or nic not in last.nics:
        return []
    before = first.nics[nic].port_packets if first is not None and nic in first.nics else []
    after = last.nics[nic].port_packets
    return [count - (before[plane] if plane < len(before) else 0) for plane, count in enumerate(after)]
