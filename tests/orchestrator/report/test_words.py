"""Findings in words."""

from dataclasses import replace

import pytest

from orchestrator.faults.fault import Fault, Window
from orchestrator.report import words
from tests.support.run_reports import sample_run_report

MISSED, STEPS, HELD = sample_run_report()["findings"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.9123, "share of line", "91.2%"),
        (380e9, "bit/s", "380.0 Gb/s"),
        (61_500, "ns", "61.5 us"),
        (2.25, "base RTTs", "2.2 RTT"),
        (12_000, "count", "12,000"),
        (0.5, "count", "0.50"),
        (4096, "bytes", "4,096 bytes"),
        (None, "count", "nothing"),
    ],
)
def test_figures_are_shown_in_the_unit_that_is_read_most_easily(value: float | None, unit: str, text: str) -> None:
    assert words.figure(value, unit) == text


def test_bounds_are_said_with_what_they_are_relative_to() -> None:
    assert words.expected(MISSED) == "at least 85.0% of line"
    assert words.expected(HELD) == "at most 0 bytes"
    assert words.expected(MISSED | {"at_most": 1.0}) == "at least 85.0% and at most 100.0% of line"
    assert words.expected(MISSED | {"unit": "share"}) == "at least 85.0%"


def test_what_was_observed_says_of_what_how_often_and_why_not() -> None:
    assert words.observed(MISSED) == "45.0%"
    assert words.observed(MISSED | {"observed_of": "1", "outside": 2, "figures": 6}) == "45.0% of 1, 2 of 6 outside"
    assert words.observed(STEPS) == "8 of train"
    assert words.observed(HELD) == "0 bytes"
    nothing = MISSED | {"observed": None, "observed_of": "", "outside": 0, "why": "no fault took place"}
    assert words.observed(nothing) == "nothing: no fault took place"


def test_where_counts_from_the_begin_of_the_run() -> None:
    assert words.where(MISSED, 20_000) == "100 to 120 us"
    assert words.where(MISSED | {"end_ns": 120_000}, 20_000) == "100 us"
    assert words.where(MISSED | {"start_ns": None, "end_ns": None}, 0) == ""


def test_reasons_that_are_findings_are_not_said_twice() -> None:
    report = sample_run_report()
    assert words.other_reasons(report) == []
    report["reasons"].insert(0, "interrupted before its end")
    assert words.other_reasons(report) == ["interrupted before its end"]


def test_names_are_kept_short() -> None:
    assert words.shortened(["a", "b", "c"]) == "a b c"
    assert words.shortened(["a", "b", "c", "d", "e"]) == "a b c and 2 more"
    untitled = Fault("drops", "loss", ("x",), (Window(0, 1, {}),))
    assert words.fault_title(untitled) == "drops: loss"
    assert words.fault_title(replace(untitled, id="loss")) == "loss"
