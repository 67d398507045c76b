"""Results do not depend on how many processes make them."""

import pytest

from studies.catalog import STUDIES
from studies.laboratory import Job, run


@pytest.mark.slow
def test_one_process_or_two() -> None:
    studies = [STUDIES["one_bad_ev"]]
    told: list[Job] = []
    alone = run(studies, seeds=1, processes=1, done=told.append)
    assert alone == run(studies, seeds=1, processes=2)
    assert [job.variant for job in told] == list(alone[0].rows)
