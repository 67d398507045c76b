"""The bill of a job: its parts add up to its time, and say what each failure threw away."""

from orchestrator.measures.job import Attempt, Job, bill
from orchestrator.measures.recording import ProgramResult, RankResult, Step

HOUR = 3600 * 10**9


def rank(number: int, late: int = 0, state: str = "running", steps: int = 5, begin: int = 0) -> RankResult:
    """Steps of 10, a checkpoint of 3 after each second one; a rank is `late` in all of them."""
    found = RankResult(f"h{number:03}", number, state)
    at = begin
    for count in range(1, steps + 1):
        found.steps.append(Step(at, at + 4, at + 10 + late))
        at += 10
        if count % 2 == 0 and count < steps:
            found.checkpoints.append((count, at + late, at + 3 + late))
            at += 3
    return found


def result(*ranks: RankResult, cents: int = 100) -> ProgramResult:
    return ProgramResult("train", "training", list(ranks), Job(len(ranks), cents, [Attempt(0, 0, 0)]))


def test_what_is_under_way_counts_up_to_its_last_complete_step() -> None:
    program = result(rank(0), rank(1, late=1))
    paid = bill(program, 60)
    assert paid is not None
    # Five steps and two checkpoints end at 57 at the later rank.
    assert (paid.steps, paid.useful_ns, paid.checkpoint_ns, paid.hung_ns, paid.total_ns) == (5, 49, 8, 3, 60)
    assert (paid.restarts, paid.steps_lost, paid.down_ns, paid.redone_ns) == (0, 0, 0, 0)


def test_a_job_that_is_done_ends_with_its_last_rank() -> None:
    ranks = rank(0, state="done"), rank(1, state="done")
    for one in ranks:
        one.end_ns = 57
    paid = bill(result(*ranks), 1000)
    assert paid is not None
    assert (paid.total_ns, paid.availability) == (57, 51 / 57)


def test_a_failure_throws_back_to_the_last_checkpoint_of_all() -> None:
    program = result(rank(0), rank(1))
    assert program.job is not None
    first = program.job.attempts[0]
    first.failed_ns, first.halted_ns = 70, 80
    first.survey(program.ranks)
    assert (first.steps, first.step_end_ns, [one[0] for one in first.checkpoints]) == (5, 56, [2, 4])
    first.resume_step = 4
    program.job.attempts.append(Attempt(1, 4, 100))
    for one in program.ranks:
        one.steps = [*one.steps[:4], Step(100, 104, 110), Step(110, 114, 120)]
        one.end_ns, one.state = 121, "done"
    paid = bill(program, 500)
    assert paid is not None
    assert (paid.restarts, paid.steps, paid.steps_lost, paid.steps_redone) == (1, 6, 1, 1)
    # To the end of the checkpoint at 46: 40 of steps and 6; then a step in vain, 14 hung, 30 down, 21 useful.
    assert (paid.useful_ns, paid.checkpoint_ns, paid.redone_ns, paid.hung_ns, paid.down_ns) == (61, 6, 10, 14, 30)
    assert paid.total_ns == 121
    assert paid.idle_ns == 2 * 44
    assert paid.cost == 2 * 121 / HOUR
    assert paid.cost_of_failures == 2 * 54 / HOUR


def test_of_a_rank_that_died_others_tell_how_far_it_had_come() -> None:
    told, dead = rank(0), rank(1, state="lost", steps=3)
    attempt = Attempt(0, 0, 0)
    attempt.survey([told, dead])
    # It died after its checkpoint at 2, during or after that at 4; step 5 shows that this one was complete.
    assert (attempt.steps, [one[0] for one in attempt.checkpoints]) == (5, [2, 4])
    told = rank(0, steps=4)
    told.checkpoints.append((4, 43, 46))
    attempt.survey([told, dead])
    assert (attempt.steps, [one[0] for one in attempt.checkpoints]) == (4, [2])


def test_what_is_no_job_has_no_bill() -> None:
    assert bill(ProgramResult("pair", "p2p", [rank(0)]), 100) is None
    assert bill(result(rank(0)), 0) is None
