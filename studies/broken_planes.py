"""python -m studies.broken_planes: what loaded fabrics with broken planes get of their max-min shares, as a table.

Owns which breakages are measured, on which fabric, and how seeds become one cell: mean, least and most. `weak_planes`
measures one fabric. All cores work at once; the order of rows is that of `CASES`, or of `FARTHER`.

python -m studies.broken_planes --rates 10 25 100 --seeds 3 --case "links lose 5 %" --nic path_policy=oblivious
python -m studies.broken_planes --farther --rates 10 25 50 100 400 --seeds 2
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Any, Final

from mrcfabric.topology import Topology
from studies.fan_in import setting
from studies.weak_planes import Breakage, dead_t1s, longer, lossy, measure, slow

_GIGA: Final = 1_000_000_000
T1S: Final = 4
_ALL: Final = range(T1S)
CASES: Final[dict[str, Callable[[Topology], list[Breakage]]]] = {
    "nothing": lambda fabric: [],
    "links at a quarter of the rate": lambda fabric: [slow(fabric, _last(fabric), Fraction(1, 4), _ALL)],
    "links at a tenth": lambda fabric: [slow(fabric, _last(fabric), Fraction(1, 10), _ALL)],
    "6 us more per link": lambda fabric: [longer(fabric, _last(fabric), 6_000, _ALL)],
    "12 us more per link": lambda fabric: [longer(fabric, _last(fabric), 12_000, _ALL)],
    "links lose 5 %": lambda fabric: [lossy(fabric, _last(fabric), 50_000, _ALL)],
    "links lose 1 %": lambda fabric: [lossy(fabric, _last(fabric), 10_000, _ALL)],
    "links lose 10 %": lambda fabric: [lossy(fabric, _last(fabric), 100_000, _ALL)],
    "links of one T1 lose 5 %": lambda fabric: [lossy(fabric, _last(fabric), 50_000, [0])],
    "two of four T1s dead": lambda fabric: [dead_t1s(_last(fabric), 2)],
    "one T1 dead in one plane, a quarter of the rate in the other": lambda fabric: [
        dead_t1s(0, 1), slow(fabric, _last(fabric), Fraction(1, 4), _ALL),
    ],
    "half the rate in one plane, 5 % lost in the other": lambda fabric: [
        slow(fabric, 0, Fraction(1, 2), _ALL), lossy(fabric, _last(fabric), 50_000, _ALL),
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


def _last(fabric: Topology) -> int:
    return fabric.planes - 1


def fabric_of(rate_gbps: int, seed: int, planes: int, nic: Mapping[str, Any]) -> Topology:
    """Planes of four T1s and two T0s of four NICs, 1 us per link."""
    return Topology(
        name="broken-planes", planes=planes, t0_per_plane=2, t1_per_plane=T1S, nics_per_t0=4, seed=str(seed),
        evs_per_qp=32 * planes, reserve_evs_per_qp=8 * planes, rate_bps=rate_gbps * _GIGA, nic=dict(nic),
    )  # fmt: skip


def ratio(asked: tuple[str, int, int], planes: int, nic: Mapping[str, Any]) -> float:
    """The part of what is due that arrives, of (case, rate in Gb/s, seed); each NIC sends to one below another T0."""
    case, rate_gbps, seed = asked
    fabric = fabric_of(rate_gbps, seed, planes, nic)
    each = fabric.nics_per_t0
    flows = [(one, ((one // each + 1) * each + (one + seed) % each) % fabric.nics) for one in range(fabric.nics)]
    return measure(fabric, flows, (CASES | FARTHER)[case](fabric)).ratio


def cell(ratios: Sequence[float]) -> str:
    """Mean, least and most; one figure where they are the same."""
    mean, least, most = (f"{value:.2f}" for value in (sum(ratios) / len(ratios), min(ratios), max(ratios)))
    return mean if least == most else f"{mean} ({least} to {most})"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m studies.broken_planes", description="Max-min shares of broken planes.")
    parser.add_argument("--case", action="append", choices=CASES, metavar="CASE", help=f"of {'; '.join(CASES)}; all")
    parser.add_argument("--farther", action="store_true", help="paths of different length in one plane")
    parser.add_argument("--rates", nargs="+", type=int, default=[10, 25, 100], help="Gb/s")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--planes", type=int, default=2)
    parser.add_argument("--nic", action="append", default=[], metavar="KNOB=VALUE")
    given = parser.parse_args(arguments)
    cases, nic = given.case or list(FARTHER if given.farther else CASES), dict(map(setting, given.nic))
    asked = [(case, rate, seed) for case in cases for rate in given.rates for seed in range(given.seeds)]
    heads = ["T1s that are farther" if given.farther else "Broken", *(f"{rate} Gb/s" for rate in given.rates)]
    print(f"| {' | '.join(heads)} |")
    print("|---" * (1 + len(given.rates)) + "|")
    with ProcessPoolExecutor() as pool:
        found = pool.map(partial(ratio, planes=given.planes, nic=nic), asked)
        for case in cases:
            cells = [cell([next(found) for _ in range(given.seeds)]) for _ in given.rates]
            print(f"| {case} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
