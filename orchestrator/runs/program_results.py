"""What came of the programs of a run, as their hosts told it last: ranks, steps, flows.

Owns the merging of what NICs say into results of whole programs. A rank whose NIC died is lost, with what it had told
before. What a rank tells is `nicd.programs.record`'s.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mrcfabric.topology import Topology
from nicd.programs.job import JobTerms
from nicd.programs.program import Program
from orchestrator.measures.job import Attempt, Job
from orchestrator.measures.recording import ProgramResult, RankResult, Step

_JOB = "training"
"""The kind of program that has attempts."""


@dataclass(slots=True)
class _Past:
    """What came of a rank's earlier attempts."""

    steps: list[Step] = field(default_factory=list)
    """Those that count."""
    checkpoints: list[tuple[int, int, int]] = field(default_factory=list)
    latencies: list[tuple[str, int, int]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    """Messages and bytes, by their names in `RankResult`."""
    flows: dict[str, dict[str, int]] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)


_NUMBERS = ("messages_sent", "messages_received", "bytes_sent", "bytes_received", "bytes_verified", "bytes_wrong")


class ProgramResults:
    """Every rank of every program."""

    def __init__(self, programs: Iterable[Program], topology: Topology) -> None:
        self.nics = frozenset(topology.nic_names())
        self._topology = topology
        self._results: list[ProgramResult] = []
        self._ranks: dict[tuple[str, str], RankResult] = {}
        """By program and NIC, as all that follows."""
        self._steps: dict[tuple[str, str], int] = {}
        self._received: dict[tuple[str, str], dict[str, int]] = {}
        self._placed: dict[tuple[str, str], dict[str, int]] = {}
        self._compared: dict[tuple[str, str], tuple[int, int]] = {}
        self._with_ranks: set[str] = set()
        self._past: dict[tuple[str, str], _Past] = {}
        for program in programs:
            self.add(program)

    def add(self, program: Program) -> None:
        """One program more."""
        names = [self._topology.node_name(index) for index in program.ranks]
        ranks = [RankResult(nic, rank, "running", begin_ns=program.begin_ns) for rank, nic in enumerate(names)]
        job = None
        if program.kind == _JOB:
            cents = JobTerms.of(program.figures).gpu_hour_cents
            job = Job(len(ranks), cents, [Attempt(0, 0, program.begin_ns, step_end_ns=program.begin_ns)])
        self._results.append(ProgramResult(program.name, program.kind, ranks, job))
        for rank in ranks:
            key = (program.name, rank.nic)
            self._ranks[key] = rank
            self._steps[key] = 0
            self._received[key] = {}
            self._placed[key] = {}
            self._with_ranks.add(rank.nic)

    def has_rank_on(self, nic: str) -> bool:
        """Whether a NIC has a rank in any program."""
        return nic in self._with_ranks

    def enter_progress(self, nic: str, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Take what a NIC answers to `progress`."""
        for name, entry in told.items():
            rank = self._ranks.get((name, nic))
            # Else of another run, or of an attempt whose end a NIC has not heard of.
            if rank is not None and entry.get("attempt", 0) == rank.attempt:
                past = self._past.get((name, nic), _NO_PAST)
                rank.state = entry["state"]
                self._steps[name, nic] = entry["steps"]
                received = {sender: flow["bytes"] for sender, flow in past.flows.items()}
                self._received[name, nic] = _added(received, entry["flows"])
                self._placed[name, nic] = _added(past.placed, entry["placed"])
                before = past.numbers.get("bytes_verified", 0), past.numbers.get("bytes_wrong", 0)
                self._compared[name, nic] = before[0] + entry["bytes_verified"], before[1] + entry["bytes_wrong"]

    def enter_records(self, nic: str, told: Iterable[Mapping[str, Any]]) -> None:
        """Take what a NIC answers to `programs`."""
        for entry in told:
            rank = self._ranks.get((entry["name"], nic))
            if rank is not None and entry.get("attempt", 0) == rank.attempt:
                self._enter_record((entry["name"], nic), rank, entry)

    def _enter_record(self, key: tuple[str, str], rank: RankResult, entry: Mapping[str, Any]) -> None:
        past = self._past.get(key, _NO_PAST)
        rank.state, rank.reason = entry["state"], entry["reason"]
        rank.end_ns = entry["end_ns"]
        if not past.numbers:
            rank.begin_ns = entry["begin_ns"]
        rank.steps = [*past.steps, *(Step(*step) for step in entry["steps"])]
        rank.checkpoints = [*past.checkpoints, *((one[0], one[1], one[2]) for one in entry.get("checkpoints", ()))]
        for name in _NUMBERS:
            setattr(rank, name, past.numbers.get(name, 0) + entry[name])
        rank.latencies = [*past.latencies, *((nic, at_ns, latency_ns) for nic, at_ns, latency_ns in entry["latencies"])]
        rank.flows = _flows_added(past.flows, entry["flows"])
        rank.placed = _added(past.placed, entry["placed"])
        self._steps[key] = entry.get("first_step", 0) + len(entry["steps"])
        self._received[key] = {sender: flow["bytes"] for sender, flow in rank.flows.items()}
        self._placed[key] = dict(rank.placed)
        self._compared[key] = rank.bytes_verified, rank.bytes_wrong

    # Attempts of a job.

    def of(self, name: str) -> ProgramResult:
        """The result of one program."""
        return next(result for result in self._results if result.name == name)

    def end_attempt(self, name: str, reason: str) -> None:
        """All ranks were ended: those that ran have failed with their job."""
        for rank in self.of(name).ranks:
            if rank.state in ("running", "done"):
                rank.state, rank.reason = "failed", reason

    def begin_attempt(self, program: Program) -> None:
        """Ranks begin anew: of what they had done, the steps before the first one count."""
        result = self.of(program.name)
        assert result.job is not None, "only jobs have attempts"
        for rank in result.ranks:
            key = program.name, rank.nic
            rank.steps = rank.steps[: program.first_step]
            rank.checkpoints = [one for one in rank.checkpoints if one[0] <= program.first_step]
            numbers = {name: getattr(rank, name) for name in _NUMBERS}
            self._past[key] = _Past(rank.steps, rank.checkpoints, rank.latencies, numbers, rank.flows, rank.placed)
            rank.state, rank.reason, rank.end_ns = "running", "", None
            rank.attempt, rank.first_step = program.attempt, program.first_step
            self._steps[key] = program.first_step
        result.job.attempts.append(
            Attempt(program.attempt, program.first_step, program.begin_ns, program.first_step, program.begin_ns)
        )

    def lose(self, dead: Iterable[str]) -> None:
        """NICs that have died take their ranks with them."""
        for nic in self._with_ranks.intersection(dead):
            for (_, where), rank in self._ranks.items():
                if where == nic and rank.state == "running":
                    rank.state, rank.reason = "lost", "its NIC died"

    @property
    def working(self) -> bool:
        """Whether some rank still has something to do, or would have if its peers had."""
        return any(rank.state == "running" for rank in self._ranks.values())

    def flows(self) -> dict[str, int]:
        """`program:sender>receiver` -> bytes of whole messages received."""
        return _by_flow(self._received)

    def placed(self) -> dict[str, int]:
        """The same of all bytes that were written to memory."""
        return _by_flow(self._placed)

    def compared(self) -> tuple[int, int]:
        """Bytes that ranks compared with what they had to be, and those of them that were something else."""
        told = self._compared.values()
        return sum(verified for verified, _ in told), sum(wrong for _, wrong in told)

    def steps(self) -> dict[str, int]:
        """Program -> steps that every rank has finished."""
        return {
            result.name: min(self._steps[result.name, rank.nic] for rank in result.ranks) for result in self._results
        }

    def results(self) -> list[ProgramResult]:
        """As told so far; the same objects every time."""
        return self._results


_NO_PAST = _Past()


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *(new for new in other if new not in one))}


def _flows_added(
    past: Mapping[str, dict[str, int]], told: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """Flows of all attempts: the first instant is the first attempt's, the last one the present one's."""
    found = {sender: dict(flow) for sender, flow in past.items()}
    for sender, flow in told.items():
        if sender not in found:
            found[sender] = dict(flow)
            continue
        old = found[sender]
        found[sender] = {**flow, "first_ns": old["first_ns"], "bytes": old["bytes"] + flow["bytes"],
                         "messages": old["messages"] + flow["messages"]}  # fmt: skip
    return found


def _by_flow(found: Mapping[tuple[str, str], Mapping[str, int]]) -> dict[str, int]:
    return {
        f"{name}:{sender}>{nic}": size
        for (name, nic), senders in found.items()
        for sender, size in sorted(senders.items())
    }
