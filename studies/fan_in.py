"""python -m studies.fan_in: many to one in virtual time, for long, at any fan-in; a row per fan-in and seed.

Owns nothing of the results' meaning but the columns of its table:

    goodput   payload that arrived, as a share of what the receiver's ports carry of it
    resent    share of all packets sent that were sent again
    jain      the least and the mean of Jain's index over bins of `--bin` base RTTs
    spread    the longest completion time divided by the shortest, with `--size` only
    errors    QPs that failed; must be 0

python -m studies.fan_in 7 31 127 --seeds 3 --planes 1
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mrcfabric.rng import Rng
from mrcfabric.topology import Setting, Topology
from mrcfabric.units import Instant
from orchestrator.process.job_arguments import count
from studies.command_line import add_settings, check_all
from studies.flows import START_NS, Flow
from studies.outcome import Outcome, jain, payload_bps
from studies.trial import Trial

_ENDLESS = 1 << 20, 64
"""Bytes of a message and messages of a flow that does not end inside its trial."""


@dataclass(frozen=True, slots=True)
class FanIn:
    """An incast and how long it is watched."""

    degree: int
    seed: int = 0
    planes: int = 1
    rtts: int = 200
    """Base RTTs that are watched."""
    warm_rtts: int = 20
    """Base RTTs before."""
    bin_rtts: int = 20
    near: int = 0
    """Senders below the receiver's own T0s."""
    size: int = 0
    """Bytes per sender; 0: without end."""
    rate_bps: int = 100_000_000_000
    link_delay_ns: int = 1000
    mtu_bytes: int = 4096
    t1_per_plane: int = 4
    late: int = 0
    """Senders that begin only after half of the warm-up."""
    nic: Mapping[str, Setting] | None = None
    switch: Mapping[str, Setting] | None = None

    def topology(self) -> Topology:
        return Topology(
            name="fan-in", seed=f"fan-in-{self.seed}", planes=self.planes, t0_per_plane=2,
            t1_per_plane=self.t1_per_plane, nics_per_t0=max(2, self.degree + 1), rate_bps=self.rate_bps,
            link_delay_ns=self.link_delay_ns, mtu_bytes=self.mtu_bytes, nic=self.nic or {}, switch=self.switch or {},
        )  # fmt: skip

    def trial(self) -> Trial:
        topology = self.topology()
        rtt = topology.base_rtt_ns()
        rng = Rng(topology.seed, "fan-in")
        far = topology.nics_per_t0
        sources = [1 + place for place in range(self.near)]
        sources += [far + place for place in range(self.degree - self.near)]
        flows = []
        for number, source in enumerate(sources):
            late = number >= self.degree - self.late
            start = START_NS + rng.below(rtt) + (self.warm_rtts * rtt // 2 if late else 0)
            size, messages = (self.size, 1) if self.size else _ENDLESS
            flows.append(Flow(source, 0, size, messages, start_ns=start, group="late" if late else "all"))
        window: tuple[Instant, Instant] | None = None
        end = START_NS + (self.warm_rtts + self.rtts) * rtt
        if not self.size:
            window = (START_NS + self.warm_rtts * rtt, end)
        return Trial(
            topology, tuple(flows), deadline_ns=end if window else START_NS + 2_000_000_000, window_ns=window,
            sample_ns=self.bin_rtts * rtt if window else 0, sample_flows=bool(window),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it; see the module's text."""

    goodput: float
    resent: float
    trimmed: float
    """Trims per packet sent."""
    timeouts: int
    jain_least: float
    jain_mean: float
    jain_all: float
    """Over the whole watch."""
    spread: float
    errors: int
    retired: int
    dropped: int
    shares: tuple[float, ...]
    """Of each flow, of what all got; in the order of the senders, near ones first."""


def watch(fan_in: FanIn) -> Found:
    """Run it and read it."""
    trial = fan_in.trial()
    return found(trial, trial.run())


def found(trial: Trial, outcome: Outcome) -> Found:
    """The columns of an outcome."""
    resent, packets = outcome.resent, outcome.nics["data_packets"]
    trims, timeouts = sum(outcome.trims.values()), outcome.retransmits.get("timeout", 0)
    if outcome.before is not None:
        before = outcome.before
        resent, packets = resent - before.resent, packets - before.nics["data_packets"]
        trims -= sum(before.trims.values())
        timeouts -= before.retransmits.get("timeout", 0)
    sent = max(1, packets)
    times = [flow.time_ns for flow in outcome.flows if flow.time_ns is not None]
    line = payload_bps(trial.topology)
    if trial.window_ns is None:
        last = outcome.last_ns()
        size = sum(flow.bytes_done for flow in outcome.flows)
        goodput = size * 8e9 / last / line if last else 0.0
        amounts = [float(size) / flow.time_ns if flow.time_ns else 0.0 for flow in outcome.flows]
        bins = [jain(amounts)]
    else:
        start, end = trial.window_ns
        amounts = [float(flow.window_bytes) for flow in outcome.flows]
        goodput = sum(amounts) * 8e9 / (end - start) / line
        first = start // trial.sample_ns + 1
        steps = range(first, len(outcome.flows[0].samples))
        bins = [jain([flow.samples[step] - flow.samples[step - 1] for flow in outcome.flows]) for step in steps]
    total = sum(amounts)
    return Found(
        goodput, resent / sent, trims / sent, timeouts,
        min(bins, default=0.0), sum(bins) / max(1, len(bins)), jain(amounts),
        max(times) / min(times) if times else 0.0, outcome.nics["qp_errors"], outcome.retired,
        sum(outcome.drops.values()), tuple(amount / total if total else 0.0 for amount in amounts),
    )  # fmt: skip


HEADING = (
    f"{'fan-in':>7} {'seed':>4} {'planes':>6} {'goodput':>8} {'resent':>7} {'trims':>7} {'t/outs':>6} "
    f"{'jain min':>8} {'mean':>6} {'all':>6} {'spread':>6} {'errors':>6} {'retired':>7} {'drops':>6} {'s':>5}"
)


def row(fan_in: FanIn, result: Found, took: float) -> str:
    """One line of the table."""
    return (
        f"{fan_in.degree:>7} {fan_in.seed:>4} {fan_in.planes:>6} {result.goodput:>8.3f} {result.resent:>7.3f} "
        f"{result.trimmed:>7.3f} {result.timeouts:>6} {result.jain_least:>8.3f} {result.jain_mean:>6.3f} "
        f"{result.jain_all:>6.3f} {result.spread:>6.2f} {result.errors:>6} {result.retired:>7} {result.dropped:>6} "
        f"{took:>5.1f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 when a QP failed."""
    parser = argparse.ArgumentParser("python -m studies.fan_in", description="Many to one, for long.")
    parser.add_argument("degrees", nargs="+", type=count, metavar="N", help="senders")
    parser.add_argument("--seeds", type=count, default=1)
    for name in ("planes", "rtts", "warm-rtts", "bin-rtts", "size", "mtu-bytes", "link-delay-ns", "rate-bps"):
        parser.add_argument("--" + name, type=count)
    for name in ("near", "late"):
        parser.add_argument("--" + name, type=int, help="of the senders")
    add_settings(parser, "nic")
    add_settings(parser, "switch")
    parser.add_argument("--shares", action="store_true", help="each sender's share, too")
    given = vars(parser.parse_args(arguments))
    fixed = {key: value for key, value in given.items() if value is not None and key in FanIn.__dataclass_fields__}
    fixed |= {key: dict(given[key]) for key in ("nic", "switch")}
    least = min(given["degrees"])
    if not (0 <= (given["near"] or 0) <= least and 0 <= (given["late"] or 0) < least):
        parser.error(f"--near is 0 to {least}, --late below {least}: they are some of the senders")
    check_all(parser, (FanIn(degree, **fixed).topology for degree in given["degrees"]))
    print(HEADING)
    errors = 0
    for degree in given["degrees"]:
        for seed in range(given["seeds"]):
            one = FanIn(degree, seed, **fixed)
            began = time.perf_counter()
            result = watch(one)
            print(row(one, result, time.perf_counter() - began), flush=True)
            if given["shares"]:
                print("        " + " ".join(f"{share * degree:.2f}" for share in result.shares))
            errors += result.errors
    return int(errors > 0)


if __name__ == "__main__":
    sys.exit(main())
