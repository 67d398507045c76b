"""A measurement as text."""

import pytest

from orchestrator.cli.perf_text import head, round_line, summary
from tests.support.reports import sample_report

ROUND = {
    "round": 3,
    "size_bytes": 4096,
    "senders": 8,
    "goodput_gbps": 5719.93,
    "line_share": 0.8937,
    "slowest_gbps": 722.7,
    "latency_ns": {"p50": 74_200, "p99": 97_400, "max": 97_600},
    "retransmits": 0,
    "ev_transitions": 1,
    "drops": 2,
    "ev_skips": 3,
}


@pytest.mark.parametrize(("evs", "own"), [(True, ["1", "3"]), (False, [])])
def test_a_round_stands_under_its_head_which_has_evs_only_where_nics_have(evs: bool, own: list[str]) -> None:
    line = round_line(ROUND, evs)
    assert len(line) == len(head(evs))
    assert ("bad EV" in head(evs)) == evs
    assert line.split() == ["3", "4096", "8", "5719.9", "89.4%", "722.7", "74.2", "97.4", "97.6", "0", "2", *own]


def test_the_summary_ends_with_the_verdict_and_its_reasons() -> None:
    lines = summary(sample_report()).splitlines()
    assert lines[2:] == ["verdict: FAIL", "  no step lost: 4 of 5 steps"]


def test_drops_beside_the_rounds_are_named() -> None:
    lines = summary(sample_report() | {"drops": {"unknown_peer": 2, "loss": 1}}).splitlines()
    assert lines[1] == "dropped, because their QPs were gone: 2 unknown_peer"
