"""The end of a run in lines."""

from mrcfabric.cores import COMPILED, CORES
from orchestrator.runs.summary import summary_lines
from tests.support.recordings import sample_recording
from tests.support.run_reports import report_of, sample_run_report


def test_every_finding_has_its_line_and_what_failed_says_where() -> None:
    assert summary_lines(sample_run_report()) == [
        "  FAIL  goodput <holds>: 45.0%; at least 85.0% of line, at 100 to 120 us",
        "  ok    eight steps: 8 of train; at least 8",
        "  ok    every byte right: 0 bytes; at most 0 bytes",
        f"  cores: {'compiled' if CORES.run == COMPILED else 'pure Python'}",
        "verdict: NOT HELD",
    ]


def test_reasons_that_are_no_findings_stand_below_the_verdict() -> None:
    lost = report_of(sample_recording(ended="lost", lost="p0-t1-0 was killed\nits last line"))
    assert summary_lines(lost)[-3:] == ["verdict: LOST", "  p0-t1-0 was killed", "  its last line"]


def test_a_run_whose_time_ran_out_says_so() -> None:
    lines = summary_lines(report_of(sample_recording(ended="length")))
    note, verdict = next(one for one in lines if one.startswith("  note")), lines[-1]
    assert "time ran out: the run's length of " in note
    assert verdict.startswith("verdict: ")
