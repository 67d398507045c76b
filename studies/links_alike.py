"""python -m studies.links_alike: what is left where all links are broken alike, of any system, as a table.

Owns the faults, the links that each tier has, and what a fault leaves of a link. Eight NICs below two T0s with four T1s
send to one another across T1s without end; everything is broken before they begin. `bench_fabric` measures.

python -m studies.links_alike --systems mrc uet --rates 25 100 400 --links all
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.rng import PPM
from mrcfabric.topology import Topology
from orchestrator.faults.fault import once
from orchestrator.process.job_arguments import count
from orchestrator.sim.fabric import SimulatedFabric
from studies.command_line import add_cases, add_settings, check_all
from studies.flows import START_NS, Flow, Line
from studies.systems.bench_fabric import fabric, measure, of_system

_GIGA: Final = 1_000_000_000
_SETTLE_RTTS: Final = 150
_MEASURE_RTTS: Final = 60
_PATH_LINKS: Final = {"nic": 2, "fabric": 2, "all": 4}
"""Links of a path that are broken: between NICs and T0s, between T0s and T1s, or all."""


@dataclass(frozen=True, slots=True)
class Everywhere:
    """One fault on all links that are meant."""

    kind: str
    cables: tuple[str, ...]
    figures: Mapping[str, int]

    def strike(self, broken: SimulatedFabric, lines: Sequence[Line]) -> None:
        """`studies.trial.Fault`."""
        figures: dict[str, Any] = dict(self.figures)
        broken.inject(once(self.kind, *self.cables, at_ns=START_NS // 2, **figures))


@dataclass(frozen=True, slots=True)
class Case:
    """What is broken, and which part of its rate, or of its packets, a link keeps."""

    kind: str
    figures: Mapping[str, int]
    rate_part: Fraction = Fraction(1)
    arrives: Fraction = Fraction(1)


def _lost(kind: str, ppm: int) -> Case:
    return Case(kind, {"share_ppm": ppm}, arrives=1 - Fraction(ppm, PPM))


CASES: Final[dict[str, Case]] = {
    **{f"{us} us more": Case("delay", {"delay_ns": us * 1_000}) for us in (1, 3, 10)},
    **{f"up to {us} us of jitter": Case("delay", {"delay_ns": 0, "jitter_ns": us * 1_000}) for us in (1, 5, 10, 20)},
    "10 us more and up to 3 us of jitter": Case("delay", {"delay_ns": 10_000, "jitter_ns": 3_000}),
    **{f"1/{part} of the rate": Case("rate_limit", {}, Fraction(1, part)) for part in (2, 4, 10)},
    "0.1 % lost": _lost("loss", 1_000),
    "1 % lost": _lost("loss", 10_000),
    "5 % lost": _lost("loss", 50_000),
    "1 % of data lost": _lost("gray", 10_000),
    "1 % corrupted": _lost("corruption", 10_000),
    "1 % held back for 3 us": Case("reordering", {"share_ppm": 10_000, "delay_ns": 3_000}),
    "10 % held back for 20 us": Case("reordering", {"share_ppm": 100_000, "delay_ns": 20_000}),
}
"""What is broken on every link."""


def cables(topology: Topology, links: str) -> Iterator[str]:
    """The names of the links meant."""
    for plane in range(topology.planes):
        if links != "fabric":
            yield from (f"{nic_name(n)}~{t0_name(plane, n // topology.nics_per_t0)}" for n in range(topology.nics))
        if links != "nic":
            t1s = range(topology.t1_per_plane)
            yield from (
                f"{t0_name(plane, t0)}~{t1_name(plane, t1)}" for t0 in range(topology.t0_per_plane) for t1 in t1s
            )


def _fabric(system: str, rate_gbps: int, planes: int, seed: str, nic: Mapping[str, Any]) -> Topology:
    return of_system(fabric(seed, 4, 4, planes=planes, rate_bps=rate_gbps * _GIGA, nic=dict(nic)), system)


def shares(
    asked: tuple[str, str, int], planes: int, links: str, seed: str, settle_rtts: int, nic: Mapping[str, Any]
) -> list[float]:
    """What each flow gets of what links leave, of (case, system, rate in Gb/s)."""
    name, system, rate_gbps = asked
    case = CASES[name]
    topology = _fabric(system, rate_gbps, planes, seed, nic)
    figures = dict(case.figures)
    if case.rate_part < 1:
        figures["rate_bps"] = int(topology.rate_bps * case.rate_part)
    count, rtt_ns = topology.nics, topology.base_rtt_ns()
    flows = [Flow(one, (one + count // 2) % count, 1) for one in range(count)]
    fault = Everywhere(case.kind, tuple(cables(topology, links)), figures)
    found = measure(topology, flows, settle_rtts * rtt_ns, (settle_rtts + _MEASURE_RTTS) * rtt_ns, [fault])
    left = planes * case.rate_part * case.arrives ** _PATH_LINKS[links]
    return [share / float(left) for share in found.shares]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m studies.links_alike", description="All links are broken alike.")
    parser.add_argument("--systems", nargs="+", default=["mrc"])
    parser.add_argument("--rates", nargs="+", type=count, default=[25, 100, 400], help="Gb/s")
    parser.add_argument("--planes", type=count, default=1)
    parser.add_argument(
        "--links", choices=_PATH_LINKS, default="all", help="those of NICs, those between switches, all"
    )
    add_cases(parser, CASES)
    parser.add_argument("--seed", default="alike")
    parser.add_argument("--settle", type=count, default=_SETTLE_RTTS, metavar="RTTS", help="before measuring")
    add_settings(parser)
    given = parser.parse_args(arguments)
    columns = [(system, rate) for system in given.systems for rate in given.rates]
    nic = dict(given.nic)
    check_all(parser, (partial(_fabric, system, rate, given.planes, given.seed, nic) for system, rate in columns))
    cases = given.case or list(CASES)
    print(f"| Every link | {' | '.join(f'{system}, {rate} Gb/s' for system, rate in columns)} |")
    print("|---" * (1 + len(columns)) + "|")
    shape = {"planes": given.planes, "links": given.links, "seed": given.seed, "settle_rtts": given.settle}
    with ProcessPoolExecutor() as pool:
        asked = [(case, system, rate) for case in cases for system, rate in columns]
        found = pool.map(partial(shares, nic=nic, **shape), asked)
        for case in cases:
            rows = [next(found) for _ in columns]
            cells = [f"{sum(row) / len(row):.2f} ({min(row):.2f})" for row in rows]
            print(f"| {case} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
