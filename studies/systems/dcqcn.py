"""Rows D1 to D3: DCQCN against the closed forms of its rule, and two and more flows on one link.

D1 marks packets on a wire by hand, so that a notification comes when the row wants one. D2 and D3 have an up-link of
40 Gb/s between two T0s with the published marking: 5 to 200 KB, at most 1 %.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from mrcfabric.naming import nic_name, t0_name
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S, Instant
from nicd.core.nic import Nic
from nicd.core.rc.dcqcn_profile import PROFILES, DcqcnFigures
from orchestrator.sim.fabric import SimulatedFabric
from studies.flows import START_NS, Flow, Line
from studies.outcome import jain
from studies.systems.bench_fabric import CONTROL_DSCP, PLAIN_ECMP, fabric, line_bps, measure
from studies.systems.formulas import cut_rate, decayed_alpha, recovered_rate
from studies.systems.lossy_pair import MARK, PASS, LossyPair
from studies.systems.lossy_pair import START_NS as POSTED_NS
from studies.systems.row import Finding, Row, at_least, at_most, near

_RATE_BPS: Final = 40_000_000_000
_MARKS: Final = {"ecn_min_bytes": 5_000, "ecn_max_bytes": 200_000, "ecn_max_ppm": 10_000}
"""RED of the DCQCN paper for 40 Gb/s."""
_US: Final = 1_000
_MS: Final = 1_000_000
_BIN_NS: Final = 500 * _US


class Notified(NamedTuple):
    """One point of D1."""

    profile: str
    rate_bps: int
    periods: int = 0
    """Of alpha between the first notification and the second."""


class LateComer(NamedTuple):
    """One point of D2."""

    late_us: int
    seed: int = 1


class Steady(NamedTuple):
    """One point of D3."""

    flows: tuple[int, ...]
    """N, one after the other."""
    watch_ms: int = 20
    seed: int = 1


def measure_cut(point: Notified) -> Sequence[Finding]:
    """D1: the rate after one notification, its steps back, and the cut of a second one."""
    figures = PROFILES[point.profile]
    second_ns = POSTED_NS + 20_000 + point.periods * figures.alpha_ns if point.periods else 0
    marked: list[int] = []

    def rule(number: int, _psn: int) -> int:
        due = not marked or (len(marked) == 1 and point.periods and pair.now_ns >= second_ns)
        if due:
            marked.append(number)
        return MARK if due else PASS

    size = 1 << 20
    pair = LossyPair(
        rule, rate_bps=point.rate_bps, delay_ns=1_000, mtu=4096, size=size, cc="dcqcn", rp_profile=point.profile
    )
    for _ in range(64):
        pair.write(size)
    return _second(pair, point, figures) if point.periods else _steps(pair, point, figures)


def _cut(pair: LossyPair, cuts: int) -> Instant:
    """Run until so many notifications have lowered the rate; the instant, to a microsecond."""
    while pair.rc("rate_cuts") < cuts:
        pair.run(pair.now_ns + _US)
        if pair.now_ns > 1000 * _MS:
            raise RuntimeError("no notification came")
    return pair.now_ns


def _steps(pair: LossyPair, point: Notified, figures: DcqcnFigures) -> Sequence[Finding]:
    at_ns = _cut(pair, 1)
    at = f"profile {point.profile}, {point.rate_bps // 10**9} Gb/s"
    found = [near(f"{at}: rate after the first notification", cut_rate(1.0), _rate(pair, point), 1e-4, 4)]
    for step in range(1, figures.threshold + 1):
        pair.run(at_ns + step * figures.time_ns + 2 * _US)
        if figures.byte_reset < point.rate_bps // 8 * figures.time_ns * step // NS_PER_S:
            break
        wanted = recovered_rate(1.0, step)
        found.append(near(f"{at}: after {step} T", wanted, _rate(pair, point), 1e-4, 4))
    return found


def _second(pair: LossyPair, point: Notified, figures: DcqcnFigures) -> Sequence[Finding]:
    first_ns = _cut(pair, 1)
    before = _rate(pair, point)
    while pair.rc("rate_cuts") < 2:
        before = _rate(pair, point)
        pair.run(pair.now_ns + _US)
        if pair.now_ns > 1000 * _MS:
            raise RuntimeError("no second notification came")
    periods = (pair.now_ns - _US - first_ns) // figures.alpha_ns
    alpha = decayed_alpha(periods, 2**-figures.g_shift)
    at = f"profile {point.profile}: part kept at the second notification, {periods} K after the first"
    return (near(at, cut_rate(alpha), _rate(pair, point) / before, 0.004, 4),)


def _rate(pair: LossyPair, point: Notified) -> float:
    return float(pair.row()["rate_bps"]) / point.rate_bps


@dataclass(slots=True)
class Readings:
    """What a row reads of the cores while a trial runs: a fault that breaks nothing."""

    every_ns: Instant
    until_ns: Instant
    read: Callable[[SimulatedFabric, Sequence[Line]], Any]
    found: list[tuple[Instant, Any]] = field(default_factory=list)

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        """`studies.trial.Fault`; runs the fabric itself up to `until_ns`."""
        while fabric.now_ns < self.until_ns:
            fabric.run(fabric.now_ns + self.every_ns)
            self.found.append((fabric.now_ns - START_NS, self.read(fabric, lines)))


class Flowing(NamedTuple):
    """Two flows at an instant."""

    rates: tuple[float, ...]
    """Of their QPs, as shares of a port's."""
    placed: tuple[int, ...]
    """Bytes at their receivers."""


def _flowing(fabric: SimulatedFabric, lines: Sequence[Line]) -> Flowing:
    def row(nic: int, qpn: int) -> dict[str, Any]:
        core = fabric.simulator.node(nic_name(nic))
        assert isinstance(core, Nic)
        return next(row for row in core.qp_table() if row["qpn"] == qpn)

    return Flowing(
        tuple(row(flow.source, qpns[0])["rate_bps"] / fabric.topology.rate_bps for flow, qpns in lines),
        tuple(int(row(flow.target, qpns[0])["bytes_placed"]) for flow, qpns in lines),
    )


def dcqcn_fabric(seed: str, nics: int) -> Topology:
    """One up-link for so many senders, with the marking and the profile of 40 Gb/s, and queues that hold what comes."""
    return fabric(
        seed, nics, 1, rate_bps=_RATE_BPS, dscp=CONTROL_DSCP,
        nic={"transport": "rc", "cc": "dcqcn", "rp_profile": "40g"},
        switch={**PLAIN_ECMP, **_MARKS, "ecn": True, "data": 100.0, "data_last_hop": 100.0},
    )  # fmt: skip


def measure_late_comer(point: LateComer) -> Sequence[Finding]:
    """D2: two flows on one link, of which the second begins at line rate while the first has it all."""
    topology = dcqcn_fabric(f"d2-{point.seed}", 2)
    late_ns, watch_ns = point.late_us * _US, 12 * _MS
    flows = (Flow(0, 2, 1), Flow(1, 3, 1, start_ns=START_NS + late_ns))
    readings = Readings(50 * _US, START_NS + late_ns + watch_ns, _flowing)
    measure(topology, flows, late_ns + watch_ns + _MS, late_ns + watch_ns + 2 * _MS, (readings,))
    after = [(at_ns - late_ns, now) for at_ns, now in readings.found if at_ns >= late_ns]
    bins = after[:: _BIN_NS // readings.every_ns]
    fair_ns = next(
        (later_ns for (_, then), (later_ns, now) in pairwise(bins) if _evenness(then, now) > 0.99), 10 * watch_ns
    )
    at = f"late by {point.late_us} us, seed {point.seed}"
    found = [at_most(f"{at}: Jain above 0.99 in bins of 0.5 ms after", 3.0, fair_ns / _MS, 1, "ms")]
    return [*found, *_slopes(at, topology, [(at_ns, now.rates) for at_ns, now in after[3:]])]


def _evenness(then: Flowing, now: Flowing) -> float:
    """Jain's index of what flows placed between two instants."""
    return jain([end - begin for begin, end in zip(then.placed, now.placed, strict=True)])


def _slopes(at: str, topology: Topology, after: Sequence[tuple[Instant, Sequence[float]]]) -> list[Finding]:
    """How both rates climb between two cuts, after fast recovery: R_AI per T and per B bytes."""
    figures = PROFILES["40g"]
    fast_ns = (figures.threshold + 6) * figures.time_ns
    best: tuple[Instant, Instant, Sequence[float], Sequence[float]] | None = None
    begin = 0
    for place in range(1, len(after) + 1):
        if place < len(after) and all(
            now >= then for now, then in zip(after[place][1], after[place - 1][1], strict=True)
        ):
            continue
        calm = [entry for entry in after[begin:place] if entry[0] >= after[begin][0] + fast_ns]
        if len(calm) > 1 and max(calm[-1][1]) < 1 and (best is None or calm[-1][0] - calm[0][0] > best[1] - best[0]):
            best = calm[0][0], calm[-1][0], calm[0][1], calm[-1][1]
        begin = place
    if best is None:
        return [at_least(f"{at}: time without a cut, to see the slope", 1.0, 0.0, 2, "ms")]
    from_ns, to_ns, low, high = best
    found = []
    for number, (first, last) in enumerate(zip(low, high, strict=True)):
        mean_bps = (first + last) / 2 * topology.rate_bps
        steps = (to_ns - from_ns) / figures.time_ns + mean_bps * (to_ns - from_ns) / NS_PER_S / 8 / figures.byte_reset
        wanted = steps * figures.ai_bps / (to_ns - from_ns)
        ours = (last - first) * topology.rate_bps / (to_ns - from_ns)
        title = f"{at}: climb of flow {number} in {(to_ns - from_ns) / _MS:.2f} ms without a cut"
        found.append(near(title, wanted, ours, 0.1, 0, "Mb/s per ms"))
    return found


def measure_steady(point: Steady) -> Sequence[Finding]:
    """D3: N flows on one link for a while, for each N."""
    found, depths = [], []
    for count in point.flows:
        topology = dcqcn_fabric(f"d3-{point.seed}", max(2, count))
        nics = topology.nics_per_t0
        flows = [Flow(nic, nics + nic, 1) for nic in range(count)]
        warm_ns, watch_ns = 10 * _MS, point.watch_ms * _MS
        readings = Readings(20 * _US, START_NS + warm_ns + watch_ns, _queued_and_placed)
        measure(topology, flows, warm_ns + watch_ns, warm_ns + watch_ns + _US, (readings,))
        watched = [now for at_ns, now in readings.found if at_ns >= warm_ns]
        depths.append(sum(depth for depth, _ in watched) / len(watched))
        got = [end - begin for begin, end in zip(watched[0][1], watched[-1][1], strict=True)]
        full = line_bps(topology) * readings.every_ns * (len(watched) - 1) / 8 / NS_PER_S
        found += [
            at_least(f"N {count}: utilisation", 0.94, sum(got) / full),
            at_least(f"N {count}: Jain's index over {point.watch_ms} ms", 0.995, jain(got), 4),
        ]
    for less, more, low, high in zip(point.flows, point.flows[1:], depths, depths[1:], strict=False):
        found.append(at_least(f"mean queue with N {more}, over that with N {less}", 1.0, high / low, 2))
    return found


def _queued_and_placed(fabric: SimulatedFabric, lines: Sequence[Line]) -> tuple[int, tuple[int, ...]]:
    """(data that wait at the first T0's only up-link, bytes that each flow has placed)."""
    queue = fabric.counters(t0_name(0, 0))["ports"][fabric.topology.nics_per_t0]["data_bytes"]
    return int(queue), tuple(fabric.counters(nic_name(flow.target))["bytes_placed"] for flow, _ in lines)


ROWS: Final = (
    Row(
        "D1", "The rate after a notification", "RC x (1 - alpha/2), then half the way back per T; alpha (1-g) per K",
        "DCQCN (SIGCOMM'15) 3, 5", "1e-4; the second cut 0.4 %",
        "Two NICs; the wire marks one packet, and later another.",
        (Notified("40g", 40 * 10**9), Notified("40g", 10 * 10**9), Notified("100g", 100 * 10**9),
         *(Notified("40g", 40 * 10**9, periods) for periods in (5, 40, 120)), Notified("100g", 100 * 10**9, 200)),
        measure_cut,
    ),
    Row(
        "D2", "A late comer", "Jain > 0.99 within 3 ms; both climb R_AI per T, and per B bytes",
        "DCQCN (SIGCOMM'15); closed form for the slope", "slope 10 %", "Two NICs to two others over one up-link of "
        "40 Gb/s, profile 40g, marks from 5 to 200 KB, at most 1 %.",
        (LateComer(1000), LateComer(500), LateComer(2000, 2), LateComer(1500, 3)), measure_late_comer,
        why="Marks are rare, at most 1 %: which of two flows gets more of them is chance, and a draw can favour one "
        "for milliseconds. Of 16 seeds at 1.5 ms 12 are even after half a millisecond, 3 after 5 to 7, one not in 12.",
    ),
    Row(
        "D3", "N flows for long", "utilisation above 0.94, Jain above 0.995 for N up to 16; the queue grows with N",
        "independent simulation", "one side", "As D2 with N flows that begin together; measured from 10 ms on.",
        (Steady((2,), 5), Steady((2, 4, 8, 16), 60)), measure_steady, exact=False,
        why="Rates differ for tens of milliseconds, as marks are drawn; the index rises with the time watched: for N 8 "
        "it is 0.998 over 120 ms and 0.999 over 240.",
    ),
)  # fmt: skip
