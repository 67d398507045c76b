"""Two runs side by side."""

from typing import Any

from orchestrator.measures.expectation import Expectation
from orchestrator.report.compare import Row, compare, render
from tests.support.recordings import EXPECTED, sample_recording, sample_run_report


def slower() -> dict[str, Any]:
    """The same scenario on other daemons: every step 10 us longer, and another trace."""
    recording = sample_recording()
    for rank in recording.programs[0].ranks:
        for step in rank.steps:
            step.end_ns += 10_000
    return sample_run_report(programs=recording.programs, backend="udp", trace_digest="other", wall={"run_s": 3.0})


def rows(a: dict[str, Any], b: dict[str, Any]) -> dict[tuple[str, str], Row]:
    return {(row.section, row.what): row for row in compare(a, b).rows}


def test_a_run_agrees_with_itself() -> None:
    found = compare(sample_run_report(), sample_run_report())
    assert (found.agree, found.same_trace) == (True, True)
    assert all(row.a == row.b for row in found.rows)
    assert render(found)[-1] == "every expectation came out alike; the same trace"


def test_figures_stand_beside_each_other_with_their_ratio() -> None:
    found = rows(sample_run_report(), slower())
    row = found["work", "train step time p50, ns"]
    assert (row.a, row.b, row.ratio) == (50_000, 60_000, 1.2)
    assert found["run", "backend"] == Row("run", "backend", "sim", "udp")
    assert found["faults", "kill packets lost"].ratio is None
    assert compare(sample_run_report(), slower()).same_trace is False


def test_without_a_trace_nothing_is_said_of_it() -> None:
    found = compare(sample_run_report(trace_digest=""), sample_run_report())
    assert found.same_trace is None
    assert render(found)[-1] == "every expectation came out alike; traces not kept by both"


def test_an_expectation_that_came_out_otherwise_is_a_difference() -> None:
    lenient = (*EXPECTED[:1], Expectation("every bin", "goodput", relative_to="baseline", at_least=0.4))
    found = compare(sample_run_report(), sample_run_report(lenient))
    assert found.changed == ("every bin: did not hold in A, held in B", "no QP fails: held in A, is not there in B")
    assert not found.agree
    assert render(found)[-3:-1] == list(found.changed)


def test_expectations_of_one_name_are_kept_apart() -> None:
    twice = (Expectation("it", "qp_errors", at_most=0), Expectation("it", "qp_errors", at_least=1))
    found = compare(sample_run_report(twice), sample_run_report(twice[:1]))
    assert found.changed == ("it (2): did not hold in A, is not there in B",)


def test_what_was_set_otherwise_is_shown_by_its_path() -> None:
    other = sample_run_report(seed="other")
    other["settings"]["nic"] = {"path_policy": "flowlet"}
    found = rows(sample_run_report(), other)
    assert found["settings", "nic.path_policy"] == Row("settings", "nic.path_policy", None, "flowlet")
    assert found["scenario", "seed"].b == "other"
    assert ("settings", "planes") not in found


def test_the_table_leaves_out_what_is_the_same_unless_all_is_wanted() -> None:
    found = compare(sample_run_report(), slower())
    short, long = render(found), render(found, everything=True)
    assert any(line.split()[:3] == ["train", "stall", "p50,"] for line in short)
    assert not any("ev_skips" in line for line in short)
    assert any("ev_skips" in line for line in long)
    assert any(line.endswith("x 1.2") for line in short)
    assert any(line.startswith("  backend") and line.endswith("differs") for line in short)


def test_nothing_in_a_report_moves_the_cursor() -> None:
    report = sample_run_report((Expectation("\x1b[2J", "qp_errors", at_most=0),))
    assert "\x1b" not in "".join(render(compare(report, report)))


def test_as_plain_data() -> None:
    record = compare(sample_run_report(), slower()).record()
    assert record["agree"] is True
    assert {"section": "run", "what": "backend", "a": "sim", "b": "udp", "ratio": None} in record["rows"]
