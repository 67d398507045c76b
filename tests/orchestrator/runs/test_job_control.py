"""Restarts of jobs in virtual time: exact instants on every transport, and no byte of an old attempt gets in."""

import pytest

from orchestrator.measures.job import Attempt, Bill, bill
from orchestrator.measures.recording import Recording
from orchestrator.scenario.plan import Plan
from tests.support.corners import corners
from tests.support.runs import simulated
from tests.support.scenarios import plan_of

MS = 1_000_000
DETECT, RESCHEDULE, LOAD, CHECKPOINT = 3 * MS, 5 * MS, 2 * MS, 70_000
STEPS, EVERY = 14, 4

FILE = """
name: job
system: {system}
fabric: {{planes: 1, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2, evs_per_qp: 8, reserve_evs_per_qp: 4,
  rate_bps: 25G, nic: {{{nic}}}}}
seed: {seed}
nominal_dilation: 1
length: {length}
workload:
  - {{name: train, kind: training, ranks: all, steps: 14, buckets: 2, bucket_bytes: 32KiB, compute: 50us, jitter: 9us,
     checkpoint_every: 4, checkpoint: 70us, collective_timeout: {timeout}, restarts: {restarts}, detect: 3ms,
     reschedule: 5ms, load: 2ms, tries: 4, retry: 4ms, gpu_hour_cents: 360}}
method:
  {method}
"""
SYSTEMS = ("mrc", "roce", "ib", "uet")
CUT = "{{name: cut, at: {at}us, for: {lasting}ms, fault: link_down, selector: {{links: 'h002~p0-t0-1'}}}}"
DEAD = "{{name: dead, at: {at}us, for: {lasting}ms, fault: nic_crash, selector: {{nodes: h001}}}}"


def job(system: str, seed: str, method: str, **changed: object) -> Plan:
    fields = {"timeout": "250us", "restarts": 3, "length": "200ms", "nic": ""} | changed
    return plan_of(FILE.format(system=system, seed=seed, method=method, **fields))


def billed(recording: Recording) -> Bill:
    found = bill(recording.programs[0], recording.end_ns)
    assert found is not None
    return found


def attempts(recording: Recording) -> list[Attempt]:
    found = recording.programs[0].job
    assert found is not None
    return found.attempts


@pytest.mark.parametrize("seed", corners(["1", "2", "3"], "1"))
@pytest.mark.parametrize("system", SYSTEMS)
async def test_a_collective_that_times_out_restarts_all_ranks_at_exact_instants(system: str, seed: str) -> None:
    plan = job(system, seed, "- " + CUT.format(at=430 + 111 * int(seed), lasting=4))
    cut_ns = plan.faults[0].start_ns
    recording = await simulated(plan)
    program = recording.programs[0]
    assert recording.ended == "complete"
    assert program.done, [rank.reason for rank in program.ranks]
    assert all(len(rank.steps) == STEPS and not rank.bytes_wrong for rank in program.ranks)
    first, second = attempts(recording)
    assert first.failed_ns is not None
    assert cut_ns < first.failed_ns <= cut_ns + 350_000
    assert first.reason.endswith("timed out after 250 us")
    assert first.halted_ns == first.failed_ns + DETECT
    assert second.begin_ns == first.failed_ns + DETECT + RESCHEDULE + LOAD
    assert second.first_step == first.resume_step == first.steps // EVERY * EVERY
    assert all(rank.steps[second.first_step].begin_ns == second.begin_ns for rank in program.ranks)
    paid = billed(recording)
    assert (paid.restarts, paid.steps) == (1, STEPS)
    assert paid.steps_lost == paid.steps_redone == first.steps - first.resume_step
    assert paid.down_ns == DETECT + RESCHEDULE + LOAD
    assert paid.checkpoint_ns >= (STEPS - 1) // EVERY * CHECKPOINT
    ends = [rank.end_ns for rank in program.ranks if rank.end_ns is not None]
    assert paid.total_ns == max(ends) - plan.begin_ns
    assert paid.cost_of_failures == pytest.approx(
        4 * (paid.redone_ns + paid.hung_ns + paid.down_ns) / 3.6e12 * 3.6, rel=1e-9
    )
    assert paid.availability == pytest.approx(paid.useful_ns / paid.total_ns)


async def test_rc_fails_by_its_retries_and_the_job_with_it() -> None:
    plan = job("roce", "1", "- " + CUT.format(at=500, lasting=5), timeout=0, nic="rc_timeout: 4, rc_retry_cnt: 2")
    recording = await simulated(plan)
    first, second = attempts(recording)
    assert "retry_exceeded" in first.reason
    assert first.failed_ns is not None
    # 4.096 us * 2**4, three times, after what was sent last.
    assert first.failed_ns <= plan.faults[0].start_ns + 1_000_000
    assert second.begin_ns == first.failed_ns + DETECT + RESCHEDULE + LOAD
    assert recording.programs[0].done


@pytest.mark.parametrize("system", SYSTEMS)
async def test_a_rank_that_dies_is_waited_for(system: str) -> None:
    recording = await simulated(job(system, "4", "- " + DEAD.format(at=700, lasting=13)))
    program = recording.programs[0]
    assert program.done, [rank.reason for rank in program.ranks]
    first, second = attempts(recording)
    died_ns = recording.faults[0].fault.start_ns
    assert (first.nic, first.reason, first.failed_ns) == ("h001", "its NIC died", died_ns)
    # Dead until 13 ms: tries at 8 and 12 fail, the one at 16 does not.
    assert first.tries == 2
    assert second.begin_ns == died_ns + DETECT + RESCHEDULE + 2 * 4 * MS + LOAD
    assert sum(rank.bytes_wrong for rank in program.ranks) == 0
    assert billed(recording).down_ns == second.begin_ns - died_ns


async def test_after_so_many_tries_the_job_fails() -> None:
    recording = await simulated(job("roce", "1", "- " + DEAD.format(at=700, lasting=100), length="40ms"))
    program = recording.programs[0]
    (only,) = attempts(recording)
    assert only.tries == 4
    assert only.reason == "its NIC died; not restarted: h001 was still dead at try 4"
    assert {rank.state for rank in program.ranks} == {"failed", "lost"}
    paid = billed(recording)
    assert paid.steps == only.resume_step
    assert paid.down_ns == recording.end_ns - only.failed_ns


async def test_after_so_many_restarts_the_job_fails() -> None:
    recording = await simulated(job("mrc", "1", "- " + CUT.format(at=500, lasting=150), restarts=2, length="50ms"))
    found = attempts(recording)
    assert [attempt.number for attempt in found] == [0, 1, 2]
    assert found[-1].reason.endswith("; it was the last attempt")
    assert billed(recording).restarts == 2
    assert not recording.programs[0].done


async def test_a_link_that_is_cut_in_a_restart_costs_another() -> None:
    """The second attempt fails before its first step: it goes back to the same checkpoint."""
    methods = (
        "- " + CUT.format(at=500, lasting=4) + "\n  - " + CUT.format(at=11_100, lasting=6).replace("cut", "again", 1)
    )
    recording = await simulated(job("uet", "2", methods))
    first, second, third = attempts(recording)
    assert first.resume_step == second.first_step
    assert second.resume_step == third.first_step >= second.first_step
    assert recording.programs[0].done
    assert all(len(rank.steps) == STEPS for rank in recording.programs[0].ranks)


async def test_without_restarts_all_is_as_ever() -> None:
    text = FILE.format(system="mrc", seed="1", nic="", timeout=0, restarts=1, length="50ms", method="[]")
    recording = await simulated(plan_of(text))
    assert len(attempts(recording)) == 1
    paid = billed(recording)
    assert (paid.restarts, paid.steps_lost, paid.idle_ns, paid.cost_of_failures) == (0, 0, 0, 0)
    assert paid.availability > 0.5
