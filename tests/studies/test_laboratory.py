"""Results do not depend on how many processes make them."""

import itertools
from dataclasses import replace

import pytest

from orchestrator.process.job_pool import job_pool
from studies.catalog import STUDIES
from studies.laboratory import Job, run


@pytest.mark.slow
def test_one_process_or_two(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = STUDIES["one_bad_ev"]
    # Two of its variants will do.
    study = replace(whole, trials=lambda seed: dict(itertools.islice(whole.trials(seed).items(), 2)))
    monkeypatch.setitem(STUDIES, study.name, study)
    studies = [study]
    told: list[Job] = []
    with job_pool(1) as pool:
        alone = run(studies, pool, seeds=1, done=told.append)
    with job_pool(2) as pool:
        assert alone == run(studies, pool, seeds=1)
    assert [job.variant for job in told] == list(alone[0].rows)
