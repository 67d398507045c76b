"""The end of a run in lines."""

from orchestrator.runs.summary import summary_lines
from tests.support.run_reports import sample_run_report


def test_every_finding_has_its_line_and_what_failed_says_where() -> None:
    assert summary_lines(sample_run_report()) == [
        "  ok    every byte right: 0; at most 0",
        "  FAIL  goodput <holds> & stays: 45.0% of 1, 2 of 6 outside; at least 85.0% of line, at 100 to 120 us",
        "verdict: NOT HELD",
    ]


def test_reasons_that_are_no_findings_stand_below_the_verdict() -> None:
    report = sample_run_report(verdict="lost", reasons=["p0-t1-0 was killed\nits last line"], findings=[])
    assert summary_lines(report) == ["verdict: LOST", "  p0-t1-0 was killed", "  its last line"]
