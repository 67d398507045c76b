"""What a training job does when it fails: checkpoints, the time-out of its collectives, restarts, and what a GPU costs.

Owns the figures, their check, and the deadlines of collectives. `training` takes the checkpoints; who restarts ranks is
the run's (`orchestrator.runs.job_control`): a host knows no other host, and neither does a rank whose QPs are gone.

A restart, in the instants of fabric time that follow from the first rank to fail:

    failed            a QP failed, a collective timed out, or a NIC died
    + detect_ns       all ranks are ended; their QPs and memory are gone
    + reschedule_ns   all NICs live: new QPs are connected; else again `retry_ns` later, up to `tries` times
    + load_ns         all ranks begin with the step after the last checkpoint that all of them had finished
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.units import NS_PER_MS, Instant
from nicd.programs.kind import STEPS_MAX, Figure
from nicd.programs.program import ATTEMPTS_MAX
from nicd.programs.rank import Rank

_LENGTH_MAX: Final = 1 << 56

JOB_FIGURES: Final[Mapping[str, Figure]] = {
    "checkpoint_every": Figure(0, "Steps from one checkpoint to the next; 0: none is taken.", 0, STEPS_MAX),
    "checkpoint_ns": Figure(0, "How long a checkpoint takes; nobody computes meanwhile.", 0, _LENGTH_MAX),
    "collective_timeout_ns": Figure(
        0, "A rank fails when a bucket takes longer than this to be reduced; 0: it waits for ever.", 0, _LENGTH_MAX
    ),
    "restarts": Figure(
        0, "How often all ranks go back to the last checkpoint after one has failed; 0: the job fails.", 0,
        ATTEMPTS_MAX - 1,
    ),
    "detect_ns": Figure(NS_PER_MS, "From a rank's failure until all are ended, their QPs destroyed.", 1, _LENGTH_MAX),
    "reschedule_ns": Figure(NS_PER_MS, "From there until new QPs are connected.", 2, _LENGTH_MAX),
    "load_ns": Figure(NS_PER_MS, "From there until all ranks go on from the checkpoint.", 2, _LENGTH_MAX),
    "tries": Figure(10, "How often a restart is tried while the NIC of a rank is dead; then the job fails.", 1, 1000),
    "retry_ns": Figure(10 * NS_PER_MS, "From one try to the next.", 1, _LENGTH_MAX),
    "gpu_hour_cents": Figure(0, "Price of an hour of one GPU (one rank) in hundredths, for the bill.", 0, 10**6),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobTerms:
    """The figures of `JOB_FIGURES`, by their names."""

    checkpoint_every: int
    checkpoint_ns: int
    collective_timeout_ns: int
    restarts: int
    detect_ns: int
    reschedule_ns: int
    load_ns: int
    tries: int
    retry_ns: int
    gpu_hour_cents: int

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> "JobTerms":
        """From figures of a program that may leave some out."""
        return cls(**{name: figures.get(name, row.default) for name, row in JOB_FIGURES.items()})

    def checkpoint_after(self, steps: int) -> bool:
        """Whether a checkpoint follows when so many steps are done."""
        return self.checkpoint_every > 0 and steps % self.checkpoint_every == 0


def check_terms(where: str, figures: Mapping[str, Any]) -> None:
    """Raises ConfigError for figures that each are in range and together make no sense."""
    terms = JobTerms.of(figures)
    if terms.checkpoint_ns and not terms.checkpoint_every:
        raise ConfigError(f"{where}.checkpoint_ns", "no checkpoint is taken", "give checkpoint_every, or leave it out")
    if not terms.restarts:
        for name in ("detect_ns", "reschedule_ns", "load_ns", "tries", "retry_ns"):
            if name in figures and figures[name] != JOB_FIGURES[name].default:
                raise ConfigError(f"{where}.{name}", "the job is never restarted", "give restarts, or leave it out")


class Deadlines:
    """The collectives of a rank that are under way, and when each has taken too long."""

    def __init__(self, rank: Rank, timeout_ns: int) -> None:
        """`timeout_ns` 0: none ever has."""
        self._rank = rank
        self._timeout_ns = timeout_ns
        self._open: dict[tuple[int, int], Instant] = {}
        if timeout_ns:
            rank.begin(self._watch())

    def begin(self, step: int, bucket: int) -> None:
        """A collective begins now."""
        self._open[step, bucket] = self._rank.now + self._timeout_ns

    def end(self, step: int, bucket: int) -> None:
        """It is over."""
        del self._open[step, bucket]

    async def _watch(self) -> None:
        """Raises RefusedError at the instant at which a collective has taken too long."""
        # One sleeper, not one per collective: whatever begins while it sleeps has a later deadline than it.
        while True:
            now_ns = self._rank.now
            for (step, bucket), deadline_ns in self._open.items():
                if deadline_ns <= now_ns:
                    waited_us = self._timeout_ns / 1000
                    raise RefusedError(
                        f"all-reduce of bucket {bucket} in step {step} timed out after {waited_us:,.0f} us"
                    )
            await self._rank.until(min(self._open.values(), default=now_ns + self._timeout_ns))
