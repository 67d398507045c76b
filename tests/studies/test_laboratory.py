"""Results do not depend on how many processes make them."""

import itertools
from dataclasses import replace

import pytest

from studies.catalog import STUDIES
from studies.laboratory import Job, run


@pytest.mark.slow
def test_one_process_or_two(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = STUDIES["one_bad_ev"]
    # Two of its variants will do. The second process is forked, and knows them too.
    study = replace(whole, trials=lambda seed: dict(itertools.islice(whole.trials(seed).items(), 2)))
    monkeypatch.setitem(STUDIES, study.name, study)
    studies = [study]
    told: list[Job] = []
    alone = run(studies, seeds=1, processes=1, done=told.append)
    assert alone == run(studies, seeds=1, processes=2)
    assert [job.variant for job in told] == list(alone[0].rows)
