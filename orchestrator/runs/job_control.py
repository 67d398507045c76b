"""Restarts the jobs of a run: notices that one has failed, ends its ranks, and begins them anew from a checkpoint.

Owns what a cluster's scheduler does over its management network, which faults of the fabric do not reach: who is told
what, at which instant. The instants follow from the failure itself and the job's figures (`nicd.programs.job`), not
from when a look noticed it, as long as looks are no further apart than `detect_ns`; `next_ns` asks for such looks. So
both backends restart at the same instants. What an attempt was and cost is `orchestrator.measures.job`'s.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from mrcfabric.errors import RefusedError
from mrcfabric.naming import nic_name
from mrcfabric.units import NEVER, Instant
from nicd.programs.job import JobTerms
from nicd.programs.program import Program
from orchestrator.faults.absence import dead, deaf
from orchestrator.faults.checks import DEADLY
from orchestrator.measures.job import Attempt
from orchestrator.measures.recording import ProgramResult
from orchestrator.runs.backend import Backend
from orchestrator.runs.recorder import Recorder

Phase: TypeAlias = Literal["running", "halting", "waiting", "over"]

Approach: TypeAlias = Callable[[Instant], Awaitable[None]]

LOOKS_PER_LOOK: Final = 16
"""A job whose failures are to be noticed at once is looked at this much more often than the run is, and no more."""


@dataclass(slots=True)
class _Job:
    """One job, and what is to be done next with it."""

    program: Program
    terms: JobTerms
    phase: Phase = "running"
    at_ns: Instant = NEVER
    """When: the instant at which ranks are ended, or at which a restart is tried."""
    loaded_ns: Instant = 0
    """Deaths after this instant are deaths of ranks of this attempt."""
    stale: frozenset[str] = frozenset()
    """NICs that could not be told that an earlier attempt is over."""

    @property
    def nics(self) -> list[str]:
        return [nic_name(index) for index in self.program.ranks]


class JobControl:
    """All jobs of one run that may be restarted."""

    def __init__(
        self, programs: Sequence[Program], backend: Backend, recorder: Recorder, look_ns: int, approach: Approach
    ) -> None:
        """`approach`: what is to be done before time goes on to an instant."""
        self._approach = approach
        self._backend = backend
        self._recorder = recorder
        self._look_ns = look_ns
        terms = [(program, JobTerms.of(program.figures)) for program in programs if program.kind == "training"]
        self._jobs = [_Job(program, one) for program, one in terms if one.restarts]

    @property
    def pending(self) -> bool:
        """Whether ranks will be ended or begin anew."""
        return any(job.phase in ("halting", "waiting") for job in self._jobs)

    def next_ns(self) -> Instant:
        """Time is to stand still here, at the latest, and `act` to be called after a look."""
        return min((self._next_of(job) for job in self._jobs), default=NEVER)

    def _next_of(self, job: _Job) -> Instant:
        if job.phase == "over":
            return NEVER
        if job.phase != "running":
            # A command is carried out at the instant after that at which time stands still.
            return job.at_ns - 1
        return self._backend.now_ns + max(job.terms.detect_ns, self._look_ns // LOOKS_PER_LOOK, 1)

    async def act(self) -> None:
        """Do what is due, right after a look."""
        for job in self._jobs:
            if job.phase == "running":
                await self._watch(job)
            if job.phase == "halting" and self._backend.now_ns >= job.at_ns - 1:
                await self._halt(job)
            if job.phase == "waiting" and self._backend.now_ns >= job.at_ns - 1:
                await self._try(job)

    # Failing.

    async def _watch(self, job: _Job) -> None:
        result = self._result(job)
        if any(rank.state == "failed" for rank in result.ranks):
            # A look asks for states alone.
            await self._recorder.last_words(job.nics)
        failures = [(rank.end_ns, rank.nic, rank.reason) for rank in result.ranks if rank.state == "failed"]
        found = [*((at_ns, nic, why) for at_ns, nic, why in failures if at_ns is not None), *self._deaths(job)]
        if not found:
            return
        attempt = self._attempt(job)
        attempt.failed_ns, attempt.nic, attempt.reason = min(found)
        job.phase = "halting"
        job.at_ns = max(attempt.failed_ns + job.terms.detect_ns, self._backend.now_ns + 1)

    def _deaths(self, job: _Job) -> Iterator[tuple[Instant, str, str]]:
        """(instant, NIC, reason) of every rank that has died since it was loaded."""
        done = {rank.nic for rank in self._result(job).ranks if rank.state == "done"}
        nics = set(job.nics) - done
        for injected in self._recorder.recording.faults:
            fault = injected.fault
            if fault.kind in DEADLY:
                for window in fault.windows:
                    if job.loaded_ns < window.start_ns <= self._backend.now_ns:
                        for nic in nics.intersection(fault.struck):
                            yield window.start_ns, nic, "its NIC died"

    async def _halt(self, job: _Job) -> None:
        """End all ranks that can be told, at one instant."""
        attempt, result = self._attempt(job), self._result(job)
        await self._recorder.last_words(job.nics)
        # A rank that died says nothing more, and one whose NIC has returned knows nothing of it.
        lost = {nic for _, nic, _ in self._deaths(job)}
        for rank in result.ranks:
            if rank.nic in lost:
                rank.state, rank.reason = "lost", "its NIC died"
        attempt.survey(result.ranks)
        attempt.halted_ns = job.at_ns
        attempt.resume_step = max((steps for steps, _, _ in attempt.checkpoints), default=attempt.first_step)
        await self._stop(job, job.nics)
        self._recorder.results.end_attempt(job.program.name, f"ended with its job: {attempt.nic}: {attempt.reason}")
        if job.program.attempt >= job.terms.restarts:
            job.phase, job.at_ns = "over", NEVER
            attempt.reason += "; it was the last attempt"
            return
        job.phase, job.at_ns = "waiting", attempt.halted_ns + job.terms.reschedule_ns

    async def _stop(self, job: _Job, nics: Sequence[str]) -> None:
        """Have the NICs among these that know the job forget it; those that cannot be told are kept in mind."""
        absent = self._absent()
        told = {nic: await self._backend.ask(nic, "progress") for nic in nics if nic not in absent}
        knowing = [nic for nic, programs in told.items() if job.program.name in programs]
        job.stale = frozenset(nic for nic in nics if nic in absent)
        await self._approach(self._backend.now_ns + 1)
        await self._backend.stop(job.program, knowing)

    # Beginning anew.

    async def _try(self, job: _Job) -> None:
        """Restart the job when all NICs live; else once more later, or never."""
        attempt = self._attempt(job)
        if absent := sorted(self._absent().intersection(job.nics)):
            attempt.tries += 1
            if attempt.tries >= job.terms.tries:
                self._give_up(job, f"{absent[0]} was still dead at try {attempt.tries}")
            else:
                job.at_ns += job.terms.retry_ns
            return
        if job.stale:
            # They were deaf when the others ended. What they still sent had nobody to take it.
            await self._stop(job, sorted(job.stale))
        begin_ns = max(job.at_ns + job.terms.load_ns, self._backend.now_ns + 2)
        program = replace(
            job.program, attempt=job.program.attempt + 1, first_step=attempt.resume_step, begin_ns=begin_ns
        )
        await self._approach(self._backend.now_ns + 1)
        try:
            await self._backend.load([program])
        except RefusedError as refusal:
            await self._stop(job, job.nics)
            self._give_up(job, str(refusal))
            return
        job.program, job.phase, job.at_ns, job.loaded_ns = program, "running", NEVER, self._backend.now_ns
        self._recorder.results.begin_attempt(program)

    def _give_up(self, job: _Job, why: str) -> None:
        self._attempt(job).reason += f"; not restarted: {why}"
        job.phase, job.at_ns = "over", NEVER

    # Knowing.

    def _absent(self) -> frozenset[str]:
        faults, now_ns = self._backend.faults(), self._backend.now_ns
        # Commands are carried out at the instant after this one.
        return dead(faults, now_ns) | dead(faults, now_ns + 1) | deaf(faults, now_ns)

    def _result(self, job: _Job) -> ProgramResult:
        return self._recorder.results.of(job.program.name)

    def _attempt(self, job: _Job) -> Attempt:
        found = self._result(job).job
        assert found is not None, "training programs are jobs"
        return found.attempts[-1]
