"""Runs studies: every variant and seed is a job, spread over processes, gathered in a fixed order.

Owns the jobs. The order in which they finish cannot show in the results.
"""

import gc
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from orchestrator.process.job_pool import JobPool, as_they_end
from studies.results import Results, heading, rounded
from studies.study import Study
from studies.trial import Trial


class Job(NamedTuple):
    """One trial of one study."""

    study: str
    variant: str
    seed: int


class Reading(NamedTuple):
    """What a job found: one value per column, and the timeline where one is wanted."""

    values: list[float | None]
    timeline: list[int]


def trial_of(study: Study, variant: str, seed: int) -> Trial:
    """The trial behind a cell of the table."""
    return study.trials(study.seed(seed))[variant]


def read(study: Study, variant: str, seed: int) -> Reading:
    """Run one trial and read its columns."""
    trial = trial_of(study, variant, seed)
    outcome = trial.run()
    values = [rounded(column, column.read(trial, outcome)) for column in study.columns]
    wanted = seed == 0 and variant in study.timeline
    placed = [0, *outcome.timeline] if wanted else []
    return Reading(values, [after - before for before, after in pairwise(placed)])


def _work(job: Job) -> Reading:
    # Read here: a study holds functions, which do not travel between processes.
    from studies.catalog import STUDIES

    reading = read(STUDIES[job.study], job.variant, job.seed)
    # A fabric is full of cycles and holds all its regions: the next one must not come on top of it.
    gc.collect()
    return reading


def run(
    studies: Sequence[Study],
    pool: JobPool,
    seeds: int | None = None,
    done: Callable[[Job], None] = lambda job: None,
) -> list[Results]:
    """All variants of `studies` over their seeds (or the first `seeds`)."""
    jobs = [
        Job(study.name, variant, seed)
        for study in studies
        for seed in range(seeds or study.seeds)
        for variant in study.trials(study.seed(seed))
    ]
    readings = {}
    for number, reading in as_they_end(pool, _work, ((job,) for job in jobs)):
        readings[jobs[number]] = reading
        done(jobs[number])
    return [_gather(study, seeds or study.seeds, readings) for study in studies]


def _gather(study: Study, seeds: int, readings: dict[Job, Reading]) -> Results:
    results = Results(study.name, seeds)
    for variant in study.trials(study.seed(0)):
        mine = [readings[Job(study.name, variant, seed)] for seed in range(seeds)]
        results.rows[variant] = {
            heading(column): [reading.values[place] for reading in mine] for place, column in enumerate(study.columns)
        }
        if mine[0].timeline:
            results.timelines[variant] = mine[0].timeline
    return results
