"""The demonstration: training over a fabric that is being broken, and what that cost.

Owns the course of events: launch, start the ranks, a quiet baseline, one episode of faults after the other, the end of
the training, the report. It waits on conditions in fabric time, never on seconds. What breaks when is `timetable`'s,
what is watched `observer`'s, what it cost `costs`', whether it passed `verdict`'s, how it looks `demo_screen`'s.
"""

import itertools
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.naming import nic_name
from mrcfabric.topology import Topology
from mrcfabric.units import GBPS, MIB, Instant
from orchestrator.apps import report
from orchestrator.apps.costs import QUIET_RTTS, Happened, cost_of, line_bps, payload_share, port_share, pulses_ns
from orchestrator.apps.observer import FabricLostError, Observer
from orchestrator.apps.ranks import Ranks
from orchestrator.apps.timetable import Episode, timetable
from orchestrator.apps.verdict import Verdict, in_short, judge_baseline, judge_demo, judge_port_share
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.faults.fault import Fault, Window
from orchestrator.hosts.cluster import Cluster
from orchestrator.process.background import first_to_end
from orchestrator.process.launcher import ProcessFailedError
from orchestrator.runs.death_watch import DaemonDiedError
from orchestrator.runs.worker_placement import processes_of, ring_order, ring_peers
from orchestrator.workers.group import Member, WorkerFailedError, started_group
from orchestrator.workers.ring import FLOAT_BYTES, RingShape

BASELINE_RTTS = 20
"""Quiet after the first whole step, before anything breaks."""
TENSOR_MIB_MAX = 1024
"""Every rank holds its gradient several times over, and all ranks are on this host."""
LEAD_RTTS = 8
"""Beyond the fabric's own lead: an episode is several commands."""
SETTLE_WALL_S = 120.0
"""A condition that has not come true by then never will."""


TROUBLES = (WorkerFailedError, FabricLostError, RefusedError, NoAnswerError, ProcessFailedError)
"""What may go wrong once the fabric runs: noted, and the report tells how far it went."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """What can be chosen."""

    tensor_mib: int = 16
    """Gradient per rank and step. An eighth of it is under way at a NIC at any time: 16 MiB keep it busy."""
    buckets: int = 32

    def shape(self, ranks: int) -> RingShape:
        """The all-reduce: the tensor rounded down to whole chunks. Raises ConfigError for impossible sizes."""
        pieces = ranks * self.buckets
        if self.tensor_mib > TENSOR_MIB_MAX:
            raise ConfigError(f"--tensor-mib {self.tensor_mib}", "impossible", f"1 to {TENSOR_MIB_MAX}")
        try:
            return RingShape(ranks, self.buckets, self.tensor_mib * MIB // FLOAT_BYTES // max(1, pieces) * pieces)
        except ValueError as error:
            raise ConfigError("--tensor-mib, --buckets", str(error)) from None


@dataclass(slots=True)
class Course:
    """Where the demonstration stands, for whoever shows it."""

    topology: Topology
    episodes: tuple[Episode, ...]
    stage: str = "launching"
    observer: Observer | None = None
    ranks: Ranks | None = None
    happened: list[Happened] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def rtt_ns(self) -> int:
        return self.topology.base_rtt_ns()


class Demo:
    """One run. `run` returns the report; `course` may be watched meanwhile."""

    def __init__(self, topology: Topology, settings: DemoSettings, cluster: Cluster | None = None) -> None:
        """`cluster`: the hosts it runs on; None: this one. Raises ConfigError for what cannot be shown."""
        self.topology = topology
        self.settings = settings
        self.shape = settings.shape(topology.nics)
        self.course = Course(topology, timetable(topology))
        self._cluster = cluster
        if cluster is not None:
            # A switch that dies must not take others with it.
            crashes = [episode.targets for episode in self.course.episodes if episode.kind == "crash"]
            cluster.sites = replace(cluster.sites, alone=frozenset(itertools.chain(*crashes)))

    async def run(self, run_dir: Path) -> dict[str, Any]:
        """The whole demonstration in a fresh fabric; the report. Raises ConfigError before anything has begun."""
        async with LaunchedFabric.launch(self.topology, run_dir, cluster=self._cluster) as fabric:
            self.course.observer = observer = Observer(fabric)
            try:
                await self._train(fabric, observer)
            except DaemonDiedError as error:
                if not fabric.unexpected_deaths():  # else they are told below
                    self.course.notes.append(str(error))
            except TROUBLES as error:
                self.course.notes.append(str(error))
            self.course.notes += in_short(fabric.unexpected_deaths())
            self.course.stage = "done"
            return self._report(fabric, observer)

    async def _train(self, fabric: LaunchedFabric, observer: Observer) -> None:
        self.course.stage = "hiring ranks"
        async with started_group(self._members(fabric), processes_of(fabric.workers, "rank")) as group:
            self.course.ranks = ranks = Ranks(group)
            await first_to_end(self._break_things(fabric, observer, ranks), ranks.serve(), forever=observer.serve())
            self.course.stage = "waiting for every EV"
            await observer.refresh()
            await first_to_end(
                observer.until(lambda: _well(observer), SETTLE_WALL_S, "every EV GOOD or SKIP"),
                forever=observer.serve(),
            )
            # Here, and not after the ranks are gone: their QPs, and the EVs of these, go with them.
            await observer.refresh()

    def _members(self, fabric: LaunchedFabric) -> list[Member]:
        order = ring_order(self.topology)
        size = {"ranks": len(order), "buckets": self.shape.buckets, "elements": self.shape.elements}
        return [
            Member(
                nic_name(nic),
                fabric.workers.verbs_path(nic_name(nic)),
                "allreduce",
                ring_peers(rank, len(order)),
                {"rank": rank, "seed": self.topology.seed, **size},
            )
            for rank, nic in enumerate(order)
        ]

    async def _break_things(self, fabric: LaunchedFabric, observer: Observer, ranks: Ranks) -> None:
        """Baseline, every episode, and the word to stop."""
        course, rtt_ns = self.course, self.course.rtt_ns
        course.stage = "first step"
        await observer.until(lambda: ranks.steps >= 1, SETTLE_WALL_S, "the first step")
        course.stage = "baseline"
        await self._pass(observer, observer.now_ns + BASELINE_RTTS * rtt_ns)
        for episode in course.episodes:
            await observer.refresh()
            start_ns = fabric.soon_ns() + LEAD_RTTS * rtt_ns
            end_ns = start_ns + episode.length_rtts * rtt_ns
            happened = Happened(episode, start_ns, end_ns, observer.books.cost())
            course.happened.append(happened)
            course.stage = episode.title
            await inflict(fabric, episode, start_ns, rtt_ns)
            await self._pass(observer, end_ns)
            course.stage = f"recovering: {episode.title}"
            await observer.until(lambda: _well(observer), SETTLE_WALL_S, f"recovery after {episode.title}")
            happened.well_ns = observer.now_ns
            happened.over_ns = happened.well_ns + QUIET_RTTS * rtt_ns
            await self._pass(observer, happened.over_ns)
            await observer.refresh()
            happened.after = observer.books.cost()
        course.stage = "last steps"
        ranks.stop()

    async def _pass(self, observer: Observer, until_ns: Instant) -> None:
        """Let fabric time pass."""
        await observer.until(lambda: observer.now_ns >= until_ns, SETTLE_WALL_S, f"fabric time {until_ns} ns")

    def _report(self, fabric: LaunchedFabric, observer: Observer) -> dict[str, Any]:
        course, topology, books = self.course, self.topology, observer.books
        ranks, goodput, rtt_ns = course.ranks, observer.goodput, course.rtt_ns
        books.bytes_verified = ranks.bytes_checked if ranks else 0
        verdict = Verdict(books.fidelity(fabric.time.record()))
        steps = ranks.record() if ranks else {"begun": 1, "finished": 0, "wrong_values": 0, "failed_ranks": 1}
        totals = books.totals()
        judge_demo(verdict, totals, steps, books.bad_evs(), books.ports_down())
        done = len(course.happened) == len(course.episodes) and not course.notes
        verdict.check("the whole timetable took place", done, "; ".join(course.notes) or "yes")
        line = line_bps(topology.nics, topology.planes, topology.rate_bps)
        ends = ranks.step_ends_ns if ranks else {}
        baseline = (ends.get(0, 0), course.happened[0].start_ns if course.happened else 0)
        baseline_bps = goodput.rate_bps(*baseline)
        judge_baseline(verdict, baseline_bps, line, payload_share(topology.mtu_bytes))
        for happened in course.happened:
            if happened.episode.kind == "nic-port":
                judge_port_share(verdict, topology.planes, port_share(happened, goodput, rtt_ns, baseline))
        faults = [cost_of(happened, goodput, rtt_ns, baseline, observer.wall_between_s) for happened in course.happened]
        return report.build(
            "demo",
            topology,
            verdict,
            totals,
            faults=faults,
            wall_s=observer.wall_s(),
            goodput=goodput,
            extra={
                "steps": {
                    **steps,
                    "tensor_bytes": self.shape.elements * FLOAT_BYTES,
                    "buckets": self.shape.buckets,
                    "ends_ns": [ends[step] for step in sorted(ends)],
                },
                "baseline": {
                    "start_ns": baseline[0],
                    "end_ns": baseline[1],
                    "goodput_gbps": round(baseline_bps / GBPS, 1),
                    "line_share": round(baseline_bps / line, 4),
                },
            },
        )


def _well(observer: Observer) -> bool:
    return observer.books.bad_evs() == 0 and observer.books.ports_down() == 0


async def inflict(fabric: LaunchedFabric, episode: Episode, start_ns: Instant, rtt_ns: int) -> None:
    """Tell the fabric of an episode ahead of time, repairs included."""
    kind = {"link": "flap", "crash": "switch_reboot", "nic-port": "nic_port_down"}[episode.kind]
    targets = tuple(target if episode.plane is None else f"{target}:{episode.plane}" for target in episode.targets)
    windows = tuple(Window(down_ns, up_ns, {}) for down_ns, up_ns in pulses_ns(episode, start_ns, rtt_ns))
    await fabric.inject(Fault(episode.title, kind, targets, windows, title=episode.title))
