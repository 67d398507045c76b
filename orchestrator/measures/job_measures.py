"""The measures of jobs: restarts, steps lost, idle GPUs, cost, availability; `measures` has them in its table.

Owns which figures of a bill can be asked for. What a bill is, is `job`'s.
"""

from collections.abc import Callable, Mapping
from typing import Final

from orchestrator.measures.job import Bill, bill
from orchestrator.measures.measure import Figure, Measure, Of, Question, Unit, matching
from orchestrator.measures.spans import whole


def _of_jobs(told: Callable[[Bill], float]) -> Callable[[Question], list[Figure]]:
    """Takes a figure of every job's bill, or of the named jobs'."""

    def take(question: Question) -> list[Figure]:
        start, end = whole(question.recording)
        programs = {program.name: program for program in question.recording.programs}
        wanted = programs if not question.of else matching(question.of, programs)
        bills = [(name, bill(programs[name], end)) for name in wanted]
        return [Figure(told(one), name, start, end) for name, one in bills if one is not None]

    return take


JOB_MEASURES: Final[Mapping[str, Measure]] = {
    "restarts": Measure(
        Unit.COUNT,
        "How often jobs went back to a checkpoint, because a rank had failed.",
        _of_jobs(lambda one: one.restarts),
        (Of.PROGRAM,),
        reduce="sum",
        of_work=False,
    ),
    "steps_lost": Measure(
        Unit.COUNT,
        "Complete steps of jobs that did not count, because a failure threw the job back behind them.",
        _of_jobs(lambda one: one.steps_lost),
        (Of.PROGRAM,),
        reduce="sum",
        of_work=False,
    ),
    "steps_redone": Measure(
        Unit.COUNT,
        "Those of them that were done again.",
        _of_jobs(lambda one: one.steps_redone),
        (Of.PROGRAM,),
        reduce="sum",
        of_work=False,
    ),
    "idle": Measure(
        Unit.NS,
        "GPU time (ranks times time) that jobs stood still: from the last complete step to the failure, and from there "
        "until they went on.",
        _of_jobs(lambda one: one.idle_ns),
        (Of.PROGRAM,),
        reduce="sum",
        of_work=False,
    ),
    "cost": Measure(
        Unit.COUNT,
        "What failures cost jobs at their `gpu_hour_cents`: steps done in vain, standing still. In whole units of "
        "money, of which that figure gives hundredths.",
        _of_jobs(lambda one: one.cost_of_failures),
        (Of.PROGRAM,),
        reduce="sum",
        of_work=False,
    ),
    "availability": Measure(
        Unit.SHARE,
        "Share of a job's time in steps that count: without checkpoints, steps done in vain, and standing still.",
        _of_jobs(lambda one: one.availability),
        (Of.PROGRAM,),
        of_work=False,
    ),
}
