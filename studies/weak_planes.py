"""Fabrics with weak, slow, lossy and dead parts: how far a loaded one is from its max-min shares.

Owns the breakages, what each leaves of a link, and the measure: goodput per flow against what is due to it, the part of
its own capacity that each plane carries, and how much that wavers. Everything is broken before the flows begin; what is
measured is the steady state.

docs/PERFORMANCE.md says where less than 0.95 of what is due arrives, and what the rest of the time is lost to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from statistics import fmean, pstdev
from typing import Any, Final

from mrcfabric.max_min import fulfilled, plane_shares
from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.rng import PPM
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S, Instant
from nicd.core.nic import Nic
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from studies.flows import START_NS, Flow, Line
from studies.outcome import payload_bps
from studies.trial import Trial

BROKEN_NS: Final = START_NS // 2
SETTLE_RTTS: Final = 40
MEASURE_RTTS: Final = 40
BINS: Final = 10
"""The measured time is cut into so many for the wavering."""


@dataclass(frozen=True, slots=True)
class Breakage:
    """One kind of fault on some links of a plane, or on switches, and what it leaves of their rate."""

    kind: str
    targets: tuple[str, ...]
    figures: tuple[tuple[str, int], ...] = ()
    left: Fraction = Fraction(0)
    """Of the rate of each link that it concerns; of delays and losses all."""
    arrives: Fraction = Fraction(1)
    """The part of what these links carry that arrives."""

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        figures: dict[str, Any] = dict(self.figures)
        fabric.inject(once(self.kind, *self.targets, at_ns=BROKEN_NS, **figures))

    def meets(self, near: str, far: str) -> bool:
        """Whether it concerns this direction of a link."""
        return any(one in (near, far, f"{near}~{far}", f"{far}~{near}") for one in self.targets)


def _cables(topology: Topology, plane: int, t1s: Sequence[int]) -> tuple[str, ...]:
    t0s = range(topology.t0_per_plane)
    return tuple(f"{t0_name(plane, t0)}~{t1_name(plane, t1)}" for t0 in t0s for t1 in t1s)


def dead_t1s(plane: int, count: int) -> Breakage:
    """The first T1s of a plane are gone."""
    return Breakage("switch_crash", tuple(t1_name(plane, number) for number in range(count)))


def slow(topology: Topology, plane: int, part: Fraction, t1s: Sequence[int]) -> Breakage:
    """The links of these T1s have a part of their rate."""
    rate_bps = int(topology.rate_bps * part)
    return Breakage("rate_limit", _cables(topology, plane, t1s), (("rate_bps", rate_bps),), part)


def lossy(topology: Topology, plane: int, loss_ppm: int, t1s: Sequence[int]) -> Breakage:
    """The links of these T1s lose packets, in both directions."""
    part = 1 - Fraction(loss_ppm, PPM)
    return Breakage("loss", _cables(topology, plane, t1s), (("share_ppm", loss_ppm),), Fraction(1), part)


def longer(topology: Topology, plane: int, delay_ns: int, t1s: Sequence[int]) -> Breakage:
    """The links of these T1s are longer by so much each."""
    return Breakage("delay", _cables(topology, plane, t1s), (("delay_ns", delay_ns),), Fraction(1))


def port_down(topology: Topology, nic: int, plane: int) -> Breakage:
    """A NIC has lost the cable of one plane."""
    return Breakage("link_down", (f"{nic_name(nic)}~{t0_name(plane, nic // topology.nics_per_t0)}",))


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one fabric."""

    goodput: float
    """Of all payload that its NICs' ports carry at line rate."""
    due: float
    """The sum of the max-min shares, in the same unit."""
    ratio: float
    """Part of it that was delivered; what one flow has beyond its share makes up for nobody."""
    worst: float
    """The same of the flow that is worst off."""
    planes: tuple[float, ...]
    """Per plane: what it carried of what is due on it; 1.0 for a plane with nothing left."""
    wavering: tuple[float, ...]
    """Per plane: standard deviation of its goodput over the bins, as a part of their mean."""


def measure(
    topology: Topology,
    flows: Sequence[tuple[int, int]],
    broken: Sequence[Breakage],
    settle_rtts: int = SETTLE_RTTS,
) -> Row:
    """Load the broken fabric and see what flows (NIC, NIC) get from `settle_rtts` base RTTs on."""
    rtt_ns = topology.base_rtt_ns()
    begin, end = START_NS + settle_rtts * rtt_ns, START_NS + (settle_rtts + MEASURE_RTTS) * rtt_ns
    # Twice what the ports carry until the end, so that no flow runs dry.
    fewest = min(sum(source == flow[0] for flow in flows) for source, _ in flows)
    size = topology.mtu_bytes * max(16, 2 * 10**6 // topology.mtu_bytes)
    messages = 1 + 2 * int(payload_bps(topology) * end / 8 / NS_PER_S / fewest / size)
    made = tuple(
        Flow(source, target, size, messages, start_ns=START_NS + 137 * number % rtt_ns)
        for number, (source, target) in enumerate(flows)
    )
    watched = _Watched(begin, end)
    outcome = Trial(topology, made, (*broken, watched), window_ns=(begin, end)).run()

    def capacity(near: str, far: str) -> int:
        whole = Fraction(PPM)
        for one in broken:
            if one.meets(near, far):
                whole *= one.left
        return int(whole)

    def arrival(near: str, far: str) -> Fraction:
        return prod((one.arrives for one in broken if one.meets(near, far)), start=Fraction(1))

    # A port's payload at line rate is the unit of PPM.
    unit = payload_bps(topology, 1) * (end - begin) / 8 / NS_PER_S / PPM
    by_plane = [plane_shares(topology, plane, flows, capacity, arrival) for plane in range(topology.planes)]
    due = [sum(each, Fraction(0)) for each in zip(*by_plane, strict=True)]
    rates = [flow.window_bytes / unit for flow in outcome.flows]
    ratio, worst = fulfilled(rates, due)
    bins = watched.bins
    carried = [sum(each) for each in zip(*bins, strict=True)]
    owed = [float(sum(shares)) * unit for shares in by_plane]
    line = topology.nics * topology.planes * PPM
    return Row(
        sum(rates) / line,
        float(sum(due)) / line,
        ratio,
        worst,
        tuple(got / own if own else 1.0 for got, own in zip(carried, owed, strict=True)),
        tuple(pstdev(each) / fmean(each) if any(each) else 0.0 for each in zip(*bins, strict=True)),
    )


class _Watched:
    """Reads what each plane has brought, bin by bin; orders nothing."""

    def __init__(self, begin: Instant, end: Instant) -> None:
        self._begin, self._end = begin, end
        self._fabric: SimulatedFabric | None = None

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        self._fabric = fabric

    @property
    def bins(self) -> list[list[int]]:
        """Bytes placed, by bin and plane."""
        fabric = self._fabric
        assert fabric is not None
        topology = fabric.topology
        table = [[0] * topology.planes for _ in range(BINS)]
        for name in topology.nic_names():
            nic = fabric.simulator.node(name)
            assert isinstance(nic, Nic)
            for start, placed in nic.bins(self._begin):
                if start < self._end:
                    row = table[(start - self._begin) * BINS // (self._end - self._begin)]
                    for plane, size in enumerate(placed):
                        row[plane] += size
        return table
