"""python -m studies.flapping_links: what links that flap, and T1s that die, cost a loaded fabric, as a table.

Owns the timetable, the fabric, and how seeds become one row. Every NIC sends to the next one of a ring that crosses T1s
with each step; one fabric link in each of two planes flaps, or one T1 in each of up to four planes is gone for a while.

python -m studies.flapping_links --rates 25 100 --seeds 3 --nic path_dead_losses=1
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from mrcfabric.naming import t0_name, t1_name
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S, Instant
from orchestrator.faults.fault import once
from orchestrator.process.job_arguments import count
from orchestrator.sim.fabric import SimulatedFabric
from studies.command_line import add_cases, add_settings, check_all
from studies.flows import START_NS, Flow, Line
from studies.outcome import payload_bps
from studies.trial import Trial

_GIGA: Final = 1_000_000_000
T1S: Final = 4
NICS_PER_T0: Final = 4
BEFORE_RTTS: Final = 40
"""The load is steady by then."""
AFTER_RTTS: Final = 20
"""What is measured ends so long after the last fault."""
_MESSAGE_BYTES: Final = 1 << 18


class Times(NamedTuple):
    """How often something fails, how long it is gone and how long it is back, in base RTTs."""

    failures: int
    gone: int
    back: int

    @property
    def rtts(self) -> int:
        """From the first failure to the last return."""
        return self.failures * (self.gone + self.back) - self.back


CASES: Final = {
    "two links flap, gone for 5 RTTs": ("link_down", Times(3, 5, 5)),
    "two links flap, gone for 3 RTTs of 12": ("link_down", Times(5, 3, 9)),
    "T1s gone for 25 RTTs": ("switch_crash", Times(1, 25, 0)),
}


@dataclass(frozen=True, slots=True)
class Row:
    """What one fabric paid, from the first failure on."""

    goodput: float
    """Of what the fabric's ports carry of payload at line rate."""
    lost: int
    retired: int
    """Entries of EVs into ASSUMED_BAD."""
    probes: int


@dataclass(frozen=True, slots=True)
class _Failures:
    """The same parts fail again and again."""

    kind: str
    targets: tuple[str, ...]
    begin_ns: Instant
    gone_ns: int
    period_ns: int
    count: int

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        for number in range(self.count):
            at_ns = self.begin_ns + number * self.period_ns
            fabric.inject(once(self.kind, *self.targets, at_ns=at_ns, until_ns=at_ns + self.gone_ns))


def fabric_of(rate_gbps: int, seed: int, planes: int, nic: Mapping[str, Any]) -> Topology:
    """Planes of four T1s and two T0s of four NICs, 16 active EVs per QP and plane."""
    return Topology(
        name="flapping-links", planes=planes, t0_per_plane=2, t1_per_plane=T1S, nics_per_t0=NICS_PER_T0,
        seed=str(seed), evs_per_qp=16 * planes, reserve_evs_per_qp=4 * planes, rate_bps=rate_gbps * _GIGA,
        nic=dict(nic),
    )  # fmt: skip


def targets(case: str, planes: int) -> tuple[str, ...]:
    """What fails."""
    if CASES[case][0] == "switch_crash":
        return tuple(t1_name(plane, place % T1S) for place, plane in enumerate(range(0, planes, -(-planes // 4))))
    one, other = planes // 4, planes // 2
    return (f"{t0_name(one, 0)}~{t1_name(one, 1)}", f"{t0_name(other, 1)}~{t1_name(other, T1S - 1)}")


def measure(asked: tuple[str, int, int], planes: int, nic: Mapping[str, Any]) -> Row:
    """What (case, rate in Gb/s, seed) costs."""
    case, rate_gbps, seed = asked
    topology = fabric_of(rate_gbps, seed, planes, nic)
    rtt_ns = topology.base_rtt_ns()
    kind, times = CASES[case]
    begin_ns = START_NS + BEFORE_RTTS * rtt_ns
    end_ns = begin_ns + (times.rtts + AFTER_RTTS) * rtt_ns
    order = [t0 * NICS_PER_T0 + place for place in range(NICS_PER_T0) for t0 in range(2)]
    # Twice what the ports carry until the end, so that no flow runs dry.
    messages = 1 + int(2 * payload_bps(topology) * end_ns / 8 / NS_PER_S / _MESSAGE_BYTES)
    flows = tuple(
        Flow(nic_number, order[(place + 1) % len(order)], _MESSAGE_BYTES, messages)
        for place, nic_number in enumerate(order)
    )
    failures = _Failures(
        kind,
        targets(case, planes),
        begin_ns,
        times.gone * rtt_ns,
        (times.gone + times.back) * rtt_ns,
        times.failures,
    )
    outcome = Trial(topology, flows, (failures,), window_ns=(begin_ns, end_ns)).run()
    before = outcome.before
    assert before is not None
    line_bytes = payload_bps(topology) * (end_ns - begin_ns) / 8 / NS_PER_S * topology.nics
    return Row(
        sum(flow.window_bytes for flow in outcome.flows) / line_bytes,
        outcome.nics["packets_lost"] - before.nics["packets_lost"],
        outcome.retired - before.retired,
        outcome.nics["probes_sent"] - before.nics["probes_sent"],
    )


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m studies.flapping_links", description="What failing links and T1s cost.")
    add_cases(parser, CASES)
    parser.add_argument("--rates", nargs="+", type=count, default=[25, 100], help="Gb/s")
    parser.add_argument("--seeds", type=count, default=3)
    parser.add_argument("--planes", type=count, default=8)
    add_settings(parser)
    given = parser.parse_args(arguments)
    cases, nic = given.case or list(CASES), dict(given.nic)
    check_all(parser, (partial(fabric_of, rate, 0, given.planes, nic) for rate in given.rates))
    asked = [(case, rate, seed) for case in cases for rate in given.rates for seed in range(given.seeds)]
    print("| Failing | Gb/s | goodput | packets lost | EVs retired | probes |")
    print("|---|---|---|---|---|---|")
    with ProcessPoolExecutor() as pool:
        found = pool.map(partial(measure, planes=given.planes, nic=nic), asked)
        for case in cases:
            for rate in given.rates:
                rows = [next(found) for _ in range(given.seeds)]
                numbers = (_mean([row.lost for row in rows]), _mean([row.retired for row in rows]))
                cells = " | ".join(f"{number:.0f}" for number in (*numbers, _mean([row.probes for row in rows])))
                print(f"| {case} | {rate} | {_mean([row.goodput for row in rows]):.3f} | {cells} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
