"""python -m studies.dying_t1s: T1s of every plane die under a loaded rack, and what its flows get of what is left.

Owns the fabric and when shares are read. Every NIC sends to one below the other T0 without end. `weak_planes` measures
what was broken before. Here a queue is full, paths are dead and ways back are silent, all at once, and windows that are
cut too far take hundreds of round trips to grow back beside those of others: what counts is the flow that is worst off.

python -m studies.dying_t1s --rates 25 100 400 --seeds 3
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from statistics import fmean
from typing import Any, Final, NamedTuple

from mrcfabric.naming import t1_name
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S, Instant
from orchestrator.faults.fault import once
from orchestrator.process.job_arguments import count
from orchestrator.sim.fabric import SimulatedFabric
from studies.broken_planes import cell, fabric_of
from studies.command_line import add_settings, check_all
from studies.flows import START_NS, Flow, Line
from studies.outcome import payload_bps
from studies.trial import Trial

SPANS: Final = ((20, 50), (60, 100))
"""When shares are measured, in base RTTs after the T1s died."""
BEFORE_RTTS: Final = 50
"""When they die, after the first packet; 0: before it."""


class Case(NamedTuple):
    """How many planes, how many T1s each, and how many of them die."""

    planes: int
    t1s: int
    dead: int


CASES: Final = (Case(1, 4, 1), Case(1, 4, 2), Case(1, 4, 3), Case(2, 2, 1), Case(2, 4, 3), Case(4, 4, 2))
NICS: Final = 4
"""Below each T0."""


@dataclass(frozen=True, slots=True)
class _Deaths:
    """These switches are gone from an instant on."""

    switches: tuple[str, ...]
    at_ns: Instant

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        fabric.inject(once("switch_crash", *self.switches, at_ns=self.at_ns))


def _fabric(case: Case, rate_gbps: int, seed: int, nic: Mapping[str, Any]) -> Topology:
    return fabric_of(rate_gbps, seed, case.planes, nic, case.t1s, NICS)


def shares(
    asked: tuple[Case, int, int], nic: Mapping[str, Any], before_rtts: int = BEFORE_RTTS
) -> tuple[tuple[float, ...], ...]:
    """For each of `SPANS`, what each flow gets of its part of what is left, of (case, rate in Gb/s, seed)."""
    case, rate_gbps, seed = asked
    fabric = _fabric(case, rate_gbps, seed, nic)
    rtt_ns = fabric.base_rtt_ns()
    dies_ns = START_NS + before_rtts * rtt_ns if before_rtts else START_NS // 2
    begin_ns = START_NS + before_rtts * rtt_ns
    end_ns = begin_ns + SPANS[-1][1] * rtt_ns
    size = fabric.mtu_bytes * max(16, 2 * 10**6 // fabric.mtu_bytes)
    # Twice what the ports carry until the end, so that no flow runs dry.
    messages = 1 + int(2 * payload_bps(fabric) * end_ns / 8 / NS_PER_S / size)
    flows = tuple(
        Flow(one, (one // NICS + 1) * NICS % fabric.nics + (one + seed) % NICS, size, messages,
             start_ns=START_NS + 137 * one % rtt_ns)
        for one in range(fabric.nics)
    )  # fmt: skip
    dead = tuple(t1_name(plane, number) for plane in range(case.planes) for number in range(case.dead))
    due = payload_bps(fabric) / 8 / NS_PER_S * float(min(Fraction(1), Fraction(case.t1s - case.dead, NICS)))
    deaths = (_Deaths(dead, dies_ns),)
    window = START_NS, end_ns
    outcome = Trial(fabric, flows, deaths, window_ns=window, sample_ns=rtt_ns, sample_flows=True).run()
    assert not outcome.nics["qp_errors"]
    # The sample of number n is taken at (n + 1) base RTTs.
    begin = begin_ns // rtt_ns - 1
    return tuple(
        tuple((flow.samples[begin + last] - flow.samples[begin + first]) / ((last - first) * rtt_ns) / due
              for flow in outcome.flows)
        for first, last in SPANS
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m studies.dying_t1s", description="T1s die under loaded racks.")
    parser.add_argument("--rates", nargs="+", type=count, default=[25, 100, 400], help="Gb/s")
    parser.add_argument("--seeds", type=count, default=3)
    parser.add_argument("--at-start", action="store_true", help="they are dead before the first packet")
    add_settings(parser)
    given = parser.parse_args(arguments)
    nic = dict(given.nic)
    check_all(parser, (partial(_fabric, case, rate, 0, nic) for case in CASES for rate in given.rates))
    heads = [f"{what}, RTTs {first} to {last}" for first, last in SPANS for what in ("least", "mean")]
    print(f"| Planes | T1s per plane | of these die | Gb/s | {' | '.join(heads)} |")
    print("|---" * (4 + len(heads)) + "|")
    asked = [(case, rate, seed) for case in CASES for rate in given.rates for seed in range(given.seeds)]
    with ProcessPoolExecutor() as pool:
        found = pool.map(partial(shares, nic=nic, before_rtts=0 if given.at_start else BEFORE_RTTS), asked)
        for case in CASES:
            for rate in given.rates:
                seeds = [next(found) for _ in range(given.seeds)]
                cells = []
                for span in zip(*seeds, strict=True):
                    cells.append(cell([min(row) for row in span]))
                    cells.append(f"{fmean(fmean(min(1.0, share) for share in row) for row in span):.2f}")
                print(f"| {case.planes} | {case.t1s} | {case.dead} | {rate} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
