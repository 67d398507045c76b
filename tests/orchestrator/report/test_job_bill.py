"""A job's bill in words: who failed, what it cost, and nothing about a job to which nothing happened."""

from typing import Any

import pytest

from orchestrator.report.job_bill import job_lines, jobs_section, span

ATTEMPT = {"attempt": 0, "first_step": 0, "begin_ns": 100, "steps": 5, "checkpoints": 2, "failed_ns": 9_100,
           "nic": "h002", "reason": "<timed out>", "halted_ns": 9_900, "resume_step": 4, "tries": 1}  # fmt: skip


def report(**changed: Any) -> dict[str, Any]:
    job = {"restarts": 1, "steps": 9, "steps_lost": 1, "steps_redone": 1, "useful_ns": 5_000, "checkpoint_ns": 0,
           "redone_ns": 1_000, "hung_ns": 500, "down_ns": 3_500, "total_ns": 10_000, "idle_gpu_ns": 16_000,
           "availability": 0.5, "gpu_hour_cents": 300, "cost": 2.0, "cost_of_failures": 1.0,
           "attempts": [ATTEMPT]} | changed  # fmt: skip
    return {"begin_ns": 100, "programs": [{"name": "train", "job": job}, {"name": "pair", "job": None}]}


def test_a_line_says_what_it_cost() -> None:
    (line,) = job_lines(report())
    assert line == (
        "  job   train: 1 restart, 1 step lost, 1 done again; GPUs idle 16.00 us together; available 50.00% of "
        "10.00 us; failures cost 1 of 2"
    )
    assert "cost" not in job_lines(report(gpu_hour_cents=0))[0]


def test_the_page_says_who_failed_and_why() -> None:
    page = jobs_section(report())
    assert "h002: &lt;timed out&gt;" in page
    assert "50.00%" in page
    assert "<timed" not in page


def test_a_job_to_which_nothing_happened_is_not_told() -> None:
    quiet = report(attempts=[{**ATTEMPT, "failed_ns": None}])
    assert job_lines(quiet) == []
    assert jobs_section(quiet) == ""


@pytest.mark.parametrize(
    ("length_ns", "said"), [(5, "5 ns"), (1_500, "1.50 us"), (2_000_000, "2.00 ms"), (3_600 * 10**9, "3,600.00 s")]
)
def test_a_length_has_the_unit_in_which_it_can_be_read(length_ns: int, said: str) -> None:
    assert span(length_ns) == said
