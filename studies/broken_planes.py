"""python -m studies.broken_planes: what loaded fabrics with broken planes get of their max-min shares, as a table.

Owns which breakages are measured, on which fabric, and how seeds become one cell: mean, least and most. `weak_planes`
measures one fabric. All cores work at once; the order of rows is that of `CASES`, `FARTHER`, `ALIKE` or `MIXED`.

python -m studies.broken_planes --rates 10 25 100 --seeds 3 --case "links lose 5 %" --nic path_policy=oblivious
python -m studies.broken_planes --farther --rates 10 25 50 100 400 --seeds 2
python -m studies.broken_planes --alike --planes 1 --rates 10 25 100 400 --seeds 2
python -m studies.broken_planes --mixed --rates 25 100 400
python -m studies.broken_planes --t1s 2 --settle 100 --rates 25 100 400    racks with twice what their up-links carry
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Any, Final

from mrcfabric.topology import Topology
from orchestrator.process.job_arguments import count
from studies.command_line import add_cases, add_settings, check_all
from studies.weak_planes import SETTLE_RTTS, Breakage, dead_t1s, longer, lossy, measure, slow

_GIGA: Final = 1_000_000_000
T1S: Final = 4
"""Per plane, and as many NICs below each T0, where nobody says otherwise."""
CASES: Final[dict[str, Callable[[Topology], list[Breakage]]]] = {
    "nothing": lambda fabric: [],
    "links at a quarter of the rate": lambda fabric: [slow(fabric, _last(fabric), Fraction(1, 4), _all(fabric))],
    "links at a tenth": lambda fabric: [slow(fabric, _last(fabric), Fraction(1, 10), _all(fabric))],
    "6 us more per link": lambda fabric: [longer(fabric, _last(fabric), 6_000, _all(fabric))],
    "12 us more per link": lambda fabric: [longer(fabric, _last(fabric), 12_000, _all(fabric))],
    "links lose 5 %": lambda fabric: [lossy(fabric, _last(fabric), 50_000, _all(fabric))],
    "links lose 1 %": lambda fabric: [lossy(fabric, _last(fabric), 10_000, _all(fabric))],
    "links lose 10 %": lambda fabric: [lossy(fabric, _last(fabric), 100_000, _all(fabric))],
    "links of one T1 lose 5 %": lambda fabric: [lossy(fabric, _last(fabric), 50_000, [0])],
    "half of the T1s dead": lambda fabric: [dead_t1s(_last(fabric), fabric.t1_per_plane // 2)],
    "one T1 dead in one plane, a quarter of the rate in the other": lambda fabric: [
        dead_t1s(0, 1), slow(fabric, _last(fabric), Fraction(1, 4), _all(fabric)),
    ],
    "half the rate in one plane, 5 % lost in the other": lambda fabric: [
        slow(fabric, 0, Fraction(1, 2), _all(fabric)), lossy(fabric, _last(fabric), 50_000, _all(fabric)),
    ],
}  # fmt: skip
"""What is broken, in the last plane where nothing else is said."""


def _farther(count: int, delay_ns: int) -> Callable[[Topology], list[Breakage]]:
    return lambda fabric: [longer(fabric, 0, delay_ns, range(count))]


FARTHER: Final = {
    f"{count} of {T1S}, {delay_ns // 1000} us per link": _farther(count, delay_ns)
    for count in range(1, T1S)
    for delay_ns in (6_000, 12_000, 30_000)
}
"""T1s of the first plane that are farther away than its others, by so much."""


def _alike(delay_ns: int) -> Callable[[Topology], list[Breakage]]:
    return lambda fabric: [longer(fabric, plane, delay_ns, _all(fabric)) for plane in range(fabric.planes)]


ALIKE: Final = {f"{us} us more per link in all planes": _alike(us * 1_000) for us in (1, 2, 3, 6, 12, 30)}
"""All planes longer than the topology says, by as much."""

MIXED: Final[dict[str, Callable[[Topology], list[Breakage]]]] = {
    "30 us more per link in one plane": lambda fabric: [_far(fabric)],
    "the same, a quarter of the rate in the other": lambda fabric: [
        _far(fabric), slow(fabric, _last(fabric), Fraction(1, 4), _all(fabric)),
    ],
    "the same, a tenth in the other": lambda fabric: [
        _far(fabric), slow(fabric, _last(fabric), Fraction(1, 10), _all(fabric)),
    ],
    "the same, 5 % lost in the other": lambda fabric: [
        _far(fabric), lossy(fabric, _last(fabric), 50_000, _all(fabric)),
    ],
    "all T1s but one at a quarter of the rate": lambda fabric: [
        slow(fabric, _last(fabric), Fraction(1, 4), _all(fabric)[1:]),
    ],
    "all T1s but one at a tenth": lambda fabric: [slow(fabric, _last(fabric), Fraction(1, 10), _all(fabric)[1:])],
    "a T1 at a tenth, another 30 us farther": lambda fabric: [
        slow(fabric, _last(fabric), Fraction(1, 10), [0]), longer(fabric, _last(fabric), 30_000, [1]),
    ],
}  # fmt: skip
"""Length and rate together, in planes and in T1s of one plane."""


def _far(fabric: Topology) -> Breakage:
    return longer(fabric, 0, 30_000, _all(fabric))


def _last(fabric: Topology) -> int:
    return fabric.planes - 1


def _all(fabric: Topology) -> range:
    """Every T1 of a plane."""
    return range(fabric.t1_per_plane)


def fabric_of(
    rate_gbps: int, seed: int, planes: int, nic: Mapping[str, Any], t1s: int = T1S, nics: int = T1S
) -> Topology:
    """Planes of `t1s` T1s and two T0s of `nics` NICs each, 1 us per link."""
    return Topology(
        name="broken-planes", planes=planes, t0_per_plane=2, t1_per_plane=t1s, nics_per_t0=nics, seed=str(seed),
        evs_per_qp=32 * planes, reserve_evs_per_qp=8 * planes, rate_bps=rate_gbps * _GIGA, nic=dict(nic),
    )  # fmt: skip


def ratio(
    asked: tuple[str, int, int],
    planes: int,
    nic: Mapping[str, Any],
    t1s: int = T1S,
    nics: int = T1S,
    settle_rtts: int = SETTLE_RTTS,
) -> float:
    """The part of what is due that arrives, of (case, rate in Gb/s, seed); each NIC sends to one below another T0."""
    case, rate_gbps, seed = asked
    fabric = fabric_of(rate_gbps, seed, planes, nic, t1s, nics)
    each = fabric.nics_per_t0
    flows = [(one, ((one // each + 1) * each + (one + seed) % each) % fabric.nics) for one in range(fabric.nics)]
    return measure(fabric, flows, (CASES | FARTHER | ALIKE | MIXED)[case](fabric), settle_rtts).ratio


def cell(ratios: Sequence[float]) -> str:
    """Mean, least and most; one figure where they are the same."""
    mean, least, most = (f"{value:.2f}" for value in (sum(ratios) / len(ratios), min(ratios), max(ratios)))
    return mean if least == most else f"{mean} ({least} to {most})"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m studies.broken_planes", description="Max-min shares of broken planes.")
    add_cases(parser, CASES | FARTHER | ALIKE | MIXED)
    tables = parser.add_mutually_exclusive_group()
    tables.add_argument("--farther", action="store_true", help="paths of different length in one plane")
    tables.add_argument("--alike", action="store_true", help="all planes longer than the topology says")
    tables.add_argument("--mixed", action="store_true", help="length and rate together")
    parser.add_argument("--rates", nargs="+", type=count, default=[5, 10, 25, 100], help="Gb/s")
    parser.add_argument("--seeds", type=count, default=3)
    parser.add_argument("--planes", type=count, default=2)
    parser.add_argument("--t1s", type=count, default=T1S, help="per plane")
    parser.add_argument("--nics", type=count, default=T1S, help="below each T0")
    parser.add_argument("--settle", type=count, default=SETTLE_RTTS, metavar="RTTS", help="before measuring")
    add_settings(parser)
    given = parser.parse_args(arguments)
    if given.t1s < 2:
        parser.error("--t1s is at least 2")
    if given.farther and given.t1s != T1S:
        parser.error(f"--farther names T1s of {T1S}, so it goes without --t1s")
    rows = FARTHER if given.farther else ALIKE if given.alike else MIXED if given.mixed else CASES
    cases, nic = given.case or list(rows), dict(given.nic)
    asked = [(case, rate, seed) for case in cases for rate in given.rates for seed in range(given.seeds)]
    size = {"t1s": given.t1s, "nics": given.nics}
    check_all(parser, (partial(fabric_of, rate, 0, given.planes, nic, **size) for rate in given.rates))
    heads = ["T1s that are farther" if given.farther else "Broken", *(f"{rate} Gb/s" for rate in given.rates)]
    print(f"| {' | '.join(heads)} |")
    print("|---" * (1 + len(given.rates)) + "|")
    with ProcessPoolExecutor() as pool:
        found = pool.map(partial(ratio, planes=given.planes, nic=nic, settle_rtts=given.settle, **size), asked)
        for case in cases:
            cells = [cell([next(found) for _ in range(given.seeds)]) for _ in given.rates]
            print(f"| {case} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
