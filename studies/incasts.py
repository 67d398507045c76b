"""python -m studies.incasts: many to one over rates, fan-ins, sizes and seeds; four tables, each row over all seeds.

Owns which incasts are measured and how seeds become one row; `fan_in` runs one incast and reads it.

    short      every sender has one message: least goodput, most sent again, mean and longest spread of completion
    long       nobody ends: least goodput, most sent again, Jain's index per bin of 20 base RTTs (at least four packets
               per sender at its share), least of all bins and mean
    near       one sender below the receiver's T0 beside far ones: its rate divided by their mean rate
    incumbent  one sender alone for 50 base RTTs, then the others join: its rate in times of its due share, over ten
               base RTTs, 10, 50 and 200 base RTTs after they joined

python -m studies.incasts --rates 25 100 400 --seeds 3
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from mrcfabric.topology import Setting
from orchestrator.process.job_arguments import count
from studies.command_line import add_settings, check_all
from studies.fan_in import FanIn, watch
from studies.flows import START_NS

SIZES = (1 << 18, 1 << 20, 8 << 20)
AFTER_RTTS = (10, 50, 200)
"""When the incumbent's share is measured, in base RTTs after the others joined."""
_ALONE_RTTS = 50
_GIGA = 1_000_000_000


def long_one(degree: int, seed: int, **given: Any) -> FanIn:
    """An incast that has converged: the excess of all first windows is sent, and bins are wide enough for fan-in."""
    made = FanIn(degree, seed, **given)
    product = made.rate_bps * made.topology().base_rtt_ns() // (8 * _GIGA * made.mtu_bytes)
    wide = max(20, -(-4 * degree // product))
    return FanIn(degree, seed, rtts=10 * wide, warm_rtts=100 + 4 * degree, bin_rtts=wide, **given)


def incumbent(degree: int, seed: int, **given: Any) -> tuple[float, ...]:
    """The first sender's rate in times of its due share, at `AFTER_RTTS` after the others joined."""
    rtts = AFTER_RTTS[-1] + 20
    one = FanIn(degree, seed, late=degree - 1, warm_rtts=2 * _ALONE_RTTS, rtts=rtts, bin_rtts=10, **given)
    trial = one.trial()
    outcome = trial.run()
    assert not outcome.nics["qp_errors"]
    rtt_ns = trial.topology.base_rtt_ns()
    times = []
    for after in AFTER_RTTS:
        # The sample of number n is taken at (n + 1) times the width of a bin.
        first = -(-(START_NS + (_ALONE_RTTS + 1 + after) * rtt_ns) // trial.sample_ns) - 1
        got = [flow.samples[first + 1] - flow.samples[first] for flow in outcome.flows]
        times.append(got[0] * degree / max(1, sum(got)))
    return tuple(times)


def rows(
    rates: Sequence[int],
    seeds: int,
    degrees: Sequence[int],
    sizes: Sequence[int],
    tables: Sequence[str],
    knobs: Mapping[str, Setting],
) -> Iterator[str]:
    """The tables, line by line. RuntimeError when a QP failed: no fabric here has a fault."""
    for table in tables:
        yield f"{table}:"
        for rate in rates:
            given = {"rate_bps": rate * _GIGA, "nic": knobs}
            for degree in degrees:
                for size in sizes if table == "short" else (0,):
                    yield f"  {rate:>4}G {degree:>4}:1 " + _row(table, degree, size, seeds, given)


def _row(table: str, degree: int, size: int, seeds: int, given: Mapping[str, Any]) -> str:
    if table == "incumbent":
        times = [incumbent(degree, seed, **given) for seed in range(seeds)]
        return " ".join(
            f"after {after:>3}: {fmean(one):.2f} ({max(one):.2f})"
            for after, one in zip(AFTER_RTTS, zip(*times, strict=True), strict=True)
        )
    if table == "near":
        made = [FanIn(degree, seed, near=1, warm_rtts=100, **given) for seed in range(seeds)]
    elif table == "long":
        made = [long_one(degree, seed, **given) for seed in range(seeds)]
    else:
        made = [FanIn(degree, seed, size=size, **given) for seed in range(seeds)]
    found = [watch(one) for one in made]
    if failed := sum(one.errors for one in found):
        raise RuntimeError(f"{failed} QPs failed in a fabric without a fault")
    text = f"goodput {min(one.goodput for one in found):.3f} resent {max(one.resent for one in found):.3f} "
    if table == "short":
        spreads = [one.spread for one in found]
        return f"{size >> 10:>5} KiB " + text + f"spread {fmean(spreads):.2f} ({max(spreads):.2f})"
    if table == "near":
        ratios = [one.shares[0] * (degree - 1) / (1 - one.shares[0]) for one in found]
        return f"near by far {min(ratios):.2f} to {max(ratios):.2f}"
    least, mean = min(one.jain_least for one in found), fmean(one.jain_mean for one in found)
    return text + f"jain {least:.3f}, mean {mean:.3f}"


TABLES = ("short", "long", "near", "incumbent")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m studies.incasts", description="Incasts over rates, sizes and seeds.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; all")
    parser.add_argument("--rates", nargs="+", type=count, default=[25, 100, 400], help="Gb/s")
    parser.add_argument("--degrees", nargs="+", type=count, default=[4, 7, 15, 31], help="senders")
    parser.add_argument("--sizes", nargs="+", type=count, default=SIZES, help="bytes per sender of the table short")
    parser.add_argument("--seeds", type=count, default=3)
    add_settings(parser)
    given = parser.parse_args(arguments)
    if unknown := set(given.tables) - set(TABLES):
        parser.error(f"no such table: {', '.join(sorted(unknown))}")
    knobs = dict(given.nic)
    incasts = (FanIn(degree, rate_bps=rate * _GIGA, nic=knobs) for rate in given.rates for degree in given.degrees)
    check_all(parser, (one.topology for one in incasts))
    for line in rows(given.rates, given.seeds, given.degrees, given.sizes, given.tables or TABLES, knobs):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
