"""The resolved timetable as text."""

import pytest

from orchestrator.scenario.render import duration, render_timetable
from tests.support.scenarios import WHOLE, plan_of, small_plan


def test_everything_a_plan_holds_is_told() -> None:
    text = render_timetable(plan_of(WHOLE))
    for words in (
        "whole, seed paper",
        "4 planes of 2 T0s and 4 T1s, 8 NICs; base RTT 9.424 us; 1 s of the timetable is 100 us",
        "over after 400 rtt (3.77 ms) at the latest, 10 rtt after everything is done; a look every 2 rtt",
        "train: training, 8 ranks, from 0 rtt, steps 30",
        "7 more times until",
        "loss, 1 %",
        "ports-3",
        "delay 1 us",
        "kill: when steps of train at least 20, 2 times at most",
        "+ 0 rtt  for 50 rtt  kill  switch_reboot  p",
        "goodput during flaps per 200ms: at least 0.5 of baseline, bins of 2.122 rtt, while flaps",
        "qp_errors: at most 0",
    ):
        assert words in text
    assert not text.endswith("\n")
    assert all(line == line.rstrip() for line in text.splitlines())


def test_many_targets_are_counted() -> None:
    text = render_timetable(small_plan("method: [{name: all, fault: link_down}]"))
    assert "to the end" in text
    assert " and 12 more" in text


def test_a_plan_without_faults_has_no_such_section() -> None:
    text = render_timetable(small_plan())
    assert "timetable\n" not in text
    assert "must hold" not in text


@pytest.mark.parametrize(
    ("length_ns", "text"), [(0, "0"), (7, "7 ns"), (9_424, "9.424 us"), (3_769_600, "3.77 ms"), (2 * 10**9, "2 s")]
)
def test_durations(length_ns: int, text: str) -> None:
    assert duration(length_ns) == text
