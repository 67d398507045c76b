"""What became of a job over its attempts, and the bill: steps lost, steps done again, idle GPUs, cost.

Owns the records of attempts and the arithmetic of the bill. `orchestrator.runs.job_control` makes attempts; what a rank
tells of its steps is `recording.RankResult`'s.

The time of a job, from its begin to its end, falls into five parts, which add up to it exactly:

    useful       steps that count, whatever the network made of them
    checkpoints  those that are complete and count
    redone       complete steps after the checkpoint to which a restart went back
    hung         from the last complete step to the failure: the step that was broken off
    down         from the failure until the next attempt begins, or for good

A GPU is idle while it is down or hung. Availability is the useful share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mrcfabric.units import NS_PER_S, Instant
from orchestrator.measures.recording import ProgramResult, RankResult

NS_PER_HOUR: Final = 3600 * NS_PER_S
CENTS: Final = 100


@dataclass(slots=True)
class Attempt:
    """One attempt of a job, as a whole: a step is complete when every rank that could tell has finished it."""

    number: int
    first_step: int
    begin_ns: Instant
    steps: int = 0
    """Complete by its end, those before its first included."""
    step_end_ns: Instant = 0
    """When the last of them, or a checkpoint after it, was complete; its begin without any."""
    checkpoints: list[tuple[int, Instant, Instant]] = field(default_factory=list)
    """Complete at all ranks: steps done by then, its begin at the first rank, its end at the last."""
    failed_ns: Instant | None = None
    """When its first rank failed."""
    nic: str = ""
    """Where, and why."""
    reason: str = ""
    halted_ns: Instant | None = None
    """When all its ranks were ended."""
    resume_step: int = 0
    """The step with which the next attempt begins."""
    tries: int = 0
    """How often a restart was tried in vain, because a NIC was dead."""

    @property
    def kept_until_ns(self) -> Instant:
        """What was done up to here counts, once a restart went back to `resume_step`."""
        ends = [end_ns for steps, _, end_ns in self.checkpoints if steps == self.resume_step]
        return ends[0] if ends else self.begin_ns

    def survey(self, ranks: Sequence[RankResult]) -> None:
        """Fill in what ranks have told of it: complete steps and checkpoints."""
        # A rank that died knows less than the others: who finished a step has what all others put into it.
        told = [rank for rank in ranks if rank.state != "lost"] or list(ranks)
        ends = [[step.end_ns for step in rank.steps if step.begin_ns >= self.begin_ns] for rank in told]
        count = min(map(len, ends), default=0)
        self.steps = self.first_step + count
        self.step_end_ns = max((row[count - 1] for row in ends), default=0) if count else self.begin_ns
        kept = [{one[0]: one for one in rank.checkpoints if one[1] >= self.begin_ns} for rank in ranks]
        # Of a rank that died during a checkpoint nobody knows whether it was complete, unless a later step was done.
        common = {step for row in kept for step in row}
        self.checkpoints = []
        for step in sorted(common):
            rows = [row[step] for row in kept if step in row]
            if len(rows) == len(ranks) or self.steps > step:
                self.checkpoints.append((step, min(row[1] for row in rows), max(row[2] for row in rows)))
        if self.checkpoints:
            self.step_end_ns = max(self.step_end_ns, self.checkpoints[-1][2])

    def record(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "attempt": self.number, "first_step": self.first_step, "begin_ns": self.begin_ns, "steps": self.steps,
            "checkpoints": len(self.checkpoints), "failed_ns": self.failed_ns, "nic": self.nic, "reason": self.reason,
            "halted_ns": self.halted_ns, "resume_step": self.resume_step, "tries": self.tries,
        }  # fmt: skip


@dataclass(slots=True)
class Job:
    """A training job: its attempts, the last of which may still go on."""

    ranks: int
    gpu_hour_cents: int
    attempts: list[Attempt]


@dataclass(frozen=True, slots=True)
class Bill:
    """What a job took; times are of the job, times its ranks they are GPU time."""

    ranks: int
    restarts: int
    steps: int
    """Those that count."""
    steps_lost: int
    """Complete steps behind the checkpoint that a restart went back to, or that nobody went on from."""
    steps_redone: int
    """Those of them that were done again."""
    useful_ns: int
    checkpoint_ns: int
    redone_ns: int
    hung_ns: int
    down_ns: int
    gpu_hour_cents: int

    @property
    def total_ns(self) -> int:
        return self.useful_ns + self.checkpoint_ns + self.redone_ns + self.hung_ns + self.down_ns

    @property
    def idle_ns(self) -> int:
        """GPU time."""
        return self.ranks * (self.hung_ns + self.down_ns)

    @property
    def availability(self) -> float:
        return self.useful_ns / self.total_ns if self.total_ns else 0.0

    @property
    def cost(self) -> float:
        """Of the whole job, in the unit whose hundredths `gpu_hour_cents` are."""
        return self._price(self.total_ns)

    @property
    def cost_of_failures(self) -> float:
        """Of what was done in vain, and of waiting."""
        return self._price(self.redone_ns + self.hung_ns + self.down_ns)

    def _price(self, time_ns: int) -> float:
        return self.ranks * time_ns / NS_PER_HOUR * self.gpu_hour_cents / CENTS

    def record(self) -> dict[str, Any]:
        """Plain data; `idle_gpu_ns` is GPU time, the other times are the job's."""
        names = ("restarts", "steps", "steps_lost", "steps_redone", "useful_ns", "checkpoint_ns", "redone_ns",
                 "hung_ns", "down_ns", "total_ns")  # fmt: skip
        return {
            **{name: getattr(self, name) for name in names},
            "idle_gpu_ns": self.idle_ns,
            "availability": round(self.availability, 6),
            "gpu_hour_cents": self.gpu_hour_cents,
            "cost": _to_six_digits(self.cost),
            "cost_of_failures": _to_six_digits(self.cost_of_failures),
        }


def _to_six_digits(value: float) -> float:
    return float(f"{value:.6g}")


def bill(program: ProgramResult, now_ns: Instant) -> Bill | None:
    """The bill of a job as of now, or as of its end; None for a program that is no job, or before its begin."""
    job = program.job
    if job is None or job.attempts[0].begin_ns >= now_ns:
        return None
    last = job.attempts[-1]
    if last.halted_ns is None:
        last.survey(program.ranks)
    ends = [rank.end_ns for rank in program.ranks if rank.end_ns is not None]
    end_ns = max(ends) if program.done and ends else now_ns
    parts = dict.fromkeys(("useful_ns", "checkpoint_ns", "redone_ns", "hung_ns", "down_ns"), 0)
    lost = executed = 0
    for place, attempt in enumerate(job.attempts):
        following = job.attempts[place + 1 : place + 2]
        _divide(attempt, following[0].begin_ns if following else end_ns, program.done and not following, parts)
        executed += attempt.steps - attempt.first_step
        if attempt.failed_ns is not None:
            lost += attempt.steps - attempt.resume_step
    steps = last.steps if last.failed_ns is None else last.resume_step
    furthest = max(attempt.steps for attempt in job.attempts)
    return Bill(
        job.ranks, len(job.attempts) - 1, steps, lost, executed - furthest, gpu_hour_cents=job.gpu_hour_cents, **parts
    )


def _divide(attempt: Attempt, until_ns: Instant, done: bool, parts: dict[str, int]) -> None:
    """Add the time from an attempt's begin to `until_ns` to the parts."""
    begin_ns = min(attempt.begin_ns, until_ns)
    active_ns = until_ns if attempt.failed_ns is None else max(begin_ns, min(attempt.failed_ns, until_ns))
    kept_ns = attempt.kept_until_ns if attempt.failed_ns is not None else active_ns if done else attempt.step_end_ns
    kept_ns = max(begin_ns, min(kept_ns, active_ns))
    done_ns = max(kept_ns, min(attempt.step_end_ns, active_ns))
    saved_ns = sum(max(0, min(end, kept_ns) - begin) for _, begin, end in attempt.checkpoints if begin < kept_ns)
    parts["useful_ns"] += kept_ns - begin_ns - saved_ns
    parts["checkpoint_ns"] += saved_ns
    parts["redone_ns"] += done_ns - kept_ns
    parts["hung_ns"] += active_ns - done_ns
    parts["down_ns"] += until_ns - active_ns
