"""Measurements over a fabric with nothing broken: bandwidth, latency, and whether it stayed clean.

In the manner of perftest: a pattern, message sizes, messages per size. Every byte is verified at its receiver. Between
two rounds the whole fabric is counted, so that a single retransmission shows in the round that caused it. Owns the
course of a measurement and its figures; who sends to whom is `patterns`', the streams are `workload.traffic`'s.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_name
from mrcfabric.topology import Topology
from mrcfabric.units import MIB
from orchestrator.apps import report
from orchestrator.apps.patterns import Flows, Pattern, flows_of, peers_of
from orchestrator.apps.verdict import Verdict, in_short, judge_clean
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.placement.layout import Pack
from orchestrator.measures.run_counters import AFTER_DESTROY, RunCounters, difference
from orchestrator.process.background import first_to_end
from orchestrator.process.launcher import ProcessFailedError
from orchestrator.runs.death_watch import DaemonDiedError, DeathWatch
from orchestrator.runs.worker_placement import processes_of
from orchestrator.workers.channel import Message
from orchestrator.workers.group import Member, WorkerFailedError, WorkerGroup, started_group
from orchestrator.workers.payload import CHECKED, SEEDED
from orchestrator.workers.stream import DEPTH_MAX, MESSAGES_MAX

AREA_BYTES_MAX = 256 * MIB
"""Memory per worker to send from, and as much to receive into."""
ROUNDS_MAX = 10_000
PERCENTILES = (50.0, 90.0, 99.0, 99.9)
CLEAN = ("retransmits", "ev_transitions", "drops", "qp_errors")


@dataclass(frozen=True, slots=True)
class PerfSettings:
    """What can be chosen."""

    pattern: Pattern
    sizes: tuple[int, ...] = (MIB,)
    """Bytes per message."""
    messages: int = 16
    """Per sender, size and round."""
    depth: int = 8
    """Messages under way per sender."""
    rounds: int = 1
    pair: tuple[int, int] = (0, -1)
    """Numbers of the two NICs of `pair`; -1: the last one."""
    both_ways: bool = False
    pack: Pack = "none"

    def check(self, topology: Topology) -> "PerfSettings":
        """The same with the pair filled in. Raises ConfigError for what cannot be measured."""
        area = max(self.sizes, default=0) * self.depth
        for name, value, most in (
            ("--size", min(self.sizes, default=0), AREA_BYTES_MAX),
            ("--messages", self.messages, MESSAGES_MAX),
            ("--depth", self.depth, DEPTH_MAX),
            ("--rounds", self.rounds, ROUNDS_MAX),
            ("--size times --depth", area, AREA_BYTES_MAX),
        ):
            if not 1 <= value <= most:
                raise ConfigError(f"{name} {value}", "impossible", f"1 to {most}")
        if topology.nics < 2:
            raise ConfigError("topology.nics_per_t0", "a measurement needs two NICs")
        source, target = (nic % topology.nics for nic in self.pair)
        if source == target:
            raise ConfigError(f"{nic_name(source)}", "cannot send to itself", "choose two NICs")
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return PerfSettings(**values | {"pair": (source, target)})


def plan_of(topology: Topology, settings: PerfSettings) -> list[tuple[int, Flows]]:
    """(message size, flows) of every round: all rounds of one size, then the next."""
    return [
        (size, flows_of(settings.pattern, topology, turn, settings.pair, settings.both_ways))
        for size in settings.sizes
        for turn in range(settings.rounds)
    ]


def percentile(ordered: Sequence[int], share: float) -> int:
    """The smallest value that at least `share` percent of the sorted values do not exceed; 0 of none."""
    if not ordered:
        return 0
    return ordered[max(0, -int(-len(ordered) * share // 100) - 1)]


def round_record(
    number: int, size: int, flows: Flows, reports: Mapping[int, Message], line_bps: float
) -> dict[str, Any]:
    """The figures of a round from the reports of its NICs.

    Goodput is what all senders sent over the time from the first post to the last completion; `line_share` is of what
    the ports of the senders could carry, headers included. `slowest_gbps` is the sender with the least.
    """
    senders = [reports[nic] for nic in flows]
    sent = sum(sender["sent"] for sender in senders)
    span_ns = max(sender["last_ns"] for sender in senders) - min(sender["first_ns"] for sender in senders)
    latencies = sorted(value for sender in senders for value in sender["latencies_ns"])
    each = [sender["sent"] * 8 / max(1, sender["last_ns"] - sender["first_ns"]) for sender in senders]
    goodput = sent * 8 / max(1, span_ns)
    return {
        "round": number,
        "size_bytes": size,
        "senders": len(flows),
        "bytes": sent,
        "bytes_verified": sum(reports[nic]["received"] for nic in reports),
        "wrong_bytes": sum(reports[nic]["wrong"] for nic in reports),
        "span_ns": span_ns,
        "goodput_gbps": round(goodput, 2),
        "slowest_gbps": round(min(each), 2),
        "line_share": round(goodput * 1e9 / (line_bps * len(flows)), 4),
        "latency_ns": {
            "min": latencies[0] if latencies else 0,
            **{f"p{share:g}": percentile(latencies, share) for share in PERCENTILES},
            "max": latencies[-1] if latencies else 0,
        },
    }


class Perf:
    """One measurement. `run` returns the report."""

    def __init__(self, topology: Topology, settings: PerfSettings, cluster: Cluster | None = None) -> None:
        """`cluster`: the hosts it runs on; None: this one."""
        self.topology = topology
        self._cluster = cluster
        self.settings = settings.check(topology)
        self.plan = plan_of(topology, self.settings)
        self.rounds: list[dict[str, Any]] = []
        self.began = False
        """Whether the fabric is ready and the first round has begun."""
        self.on_round: Callable[[dict[str, Any]], None] = lambda _record: None
        """Called with the figures of each round as it ends."""
        self.on_begin: Callable[[], None] = lambda: None
        """Called when the fabric is ready, before the first round: nothing is refused any more."""

    async def run(self, run_dir: Path) -> dict[str, Any]:
        """The whole measurement in a fresh fabric; the report.

        Raises ConfigError and ProcessFailedError when it cannot take place.
        """
        began = time.monotonic()
        counted = RunCounters()
        async with LaunchedFabric.launch(
            self.topology, run_dir, pack=self.settings.pack, cluster=self._cluster
        ) as fabric:
            failure = ""
            try:
                async with started_group(self._members(fabric), processes_of(fabric.workers, "perf")) as group:
                    await first_to_end(
                        self._measure(fabric, group, counted), forever=DeathWatch(fabric, fabric.broken).go_on()
                    )
            except DaemonDiedError as error:
                failure = "" if fabric.unexpected_deaths() else str(error)
            except (WorkerFailedError, ProcessFailedError) as error:
                if isinstance(error, ProcessFailedError) and not self.began:
                    raise
                failure = str(error)
            if not fabric.broken.done():
                await self._count(fabric, counted)
            verdict = Verdict(counted.fidelity(fabric.time.record()))
            deaths = in_short(fabric.unexpected_deaths())
        counted.bytes_verified = sum(record["bytes_verified"] for record in self.rounds)
        whole = len(self.rounds) == len(self.plan) and not deaths
        verdict.check("every round took place", whole, "; ".join([failure, *deaths]).strip("; ") or "yes")
        judge_clean(verdict, self.rounds)
        dropped = counted.drop_reasons()
        if not any(record["drops"] for record in self.rounds):
            others = {reason: count for reason, count in dropped.items() if reason not in AFTER_DESTROY}
            verdict.check("nothing was dropped beside the rounds", not others, str(others) if others else "yes")
        extra = {"pattern": self.settings.pattern, "rounds": self.rounds, "drops": dropped}
        totals = counted.totals()
        return report.build("perf", self.topology, verdict, totals, wall_s=time.monotonic() - began, extra=extra)

    def _members(self, fabric: LaunchedFabric) -> list[Member]:
        peers = peers_of([flows for _, flows in self.plan])
        self._numbers = numbers = {nic: number for number, nic in enumerate(peers)}
        size_max = max(self.settings.sizes)
        arguments = {"area_bytes": size_max * self.settings.depth, "size_max": size_max, "seed": self.topology.seed}
        return [
            Member(
                nic_name(nic),
                fabric.workers.verbs_path(nic_name(nic)),
                "traffic",
                tuple(numbers[peer] for peer in theirs),
                arguments,
            )
            for nic, theirs in peers.items()
        ]

    async def _measure(self, fabric: LaunchedFabric, group: WorkerGroup, counted: RunCounters) -> None:
        line_bps = float(self.topology.planes * self.topology.rate_bps)
        self.began = True
        self.on_begin()
        before = await self._count(fabric, counted)
        for turn, (size, flows) in enumerate(self.plan):
            reports = await self._round(group, turn, size, flows)
            after = await self._count(fabric, counted)
            record = round_record(turn, size, flows, reports, line_bps)
            added = difference(after, before)
            record |= {name: added[name] for name in (*CLEAN, "trims", "ecn_marks", "ev_skips", "data_packets")}
            before = after
            self.rounds.append(record)
            self.on_round(record)

    async def _round(self, group: WorkerGroup, turn: int, size: int, flows: Flows) -> dict[int, Message]:
        """One round; the report of everybody who took part."""
        sources = {target: source for source, target in flows.items()}
        busy = sorted({*flows, *sources})
        for nic in busy:
            group.tell(
                self._numbers[nic],
                "round",
                turn=turn,
                to=self._numbers[flows[nic]] if nic in flows else None,
                **{"from": self._numbers[sources[nic]] if nic in sources else None},
                size=size,
                messages_out=self.settings.messages,
                messages_in=self.settings.messages,
                depth=self.settings.depth,
                source=SEEDED,
                sink=CHECKED,
            )
        reports = await group.hear_all("round", [self._numbers[nic] for nic in busy])
        return dict(zip(busy, reports, strict=True))

    async def _count(self, fabric: LaunchedFabric, counted: RunCounters) -> dict[str, int]:
        for node, answer in (await fabric.patiently(fabric.counters)).items():
            counted.enter(node, answer)
        return counted.totals()
