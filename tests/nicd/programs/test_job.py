"""Figures of a job that make no sense are refused, and a collective that takes too long fails its rank on time."""

import pytest

from mrcfabric.errors import ConfigError
from nicd.programs.job import JOB_FIGURES, JobTerms, check_terms
from tests.support.hosted import Hosted, program

FIGURES = {"steps": 4, "buckets": 2, "bucket_bytes": 20_000, "compute_ns": 5_000}


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"checkpoint_ns": 5}, "here.checkpoint_ns: no checkpoint is taken (give checkpoint_every, or leave it out)"),
        ({"detect_ns": 5}, "here.detect_ns: the job is never restarted (give restarts, or leave it out)"),
        ({"tries": 3}, "here.tries: the job is never restarted (give restarts, or leave it out)"),
    ],
)
def test_figures_that_would_do_nothing_are_refused(figures: dict[str, int], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_terms("here", figures)
    assert str(caught.value) == said
    check_terms("here", {**figures, "checkpoint_every": 2, "restarts": 1})


def test_what_is_left_out_has_its_default() -> None:
    terms = JobTerms.of({"checkpoint_every": 3})
    assert [steps for steps in range(1, 10) if terms.checkpoint_after(steps)] == [3, 6, 9]
    assert terms.restarts == JOB_FIGURES["restarts"].default == 0
    assert not JobTerms.of({}).checkpoint_after(3)


@pytest.mark.parametrize("timeout_ns", [1_000, 1_003, 2_500])
def test_a_collective_that_takes_too_long_fails_its_rank_at_that_instant(timeout_ns: int) -> None:
    hosted = Hosted(program("training", 3, {**FIGURES, "collective_timeout_ns": timeout_ns}))
    hosted.fabric.run(200_000)
    for record in hosted.records():
        # The first bucket is ready after half of the computation.
        assert (record["state"], record["end_ns"]) == ("failed", 10_000 + 2_500 + timeout_ns)
        assert "all-reduce of bucket 0 in step 0 timed out" in record["reason"]


def test_time_enough_changes_nothing() -> None:
    plain, timed = (
        Hosted(program("training", 3, {**FIGURES, "collective_timeout_ns": timeout_ns})) for timeout_ns in (0, 400_000)
    )
    for hosted in (plain, timed):
        hosted.fabric.run(2_000_000)
    assert [one["steps"] for one in plain.records()] == [one["steps"] for one in timed.records()]
    assert {one["state"] for one in timed.records()} == {"done"}
