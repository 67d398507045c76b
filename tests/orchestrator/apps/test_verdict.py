"""From counts to a judgement: each criterion both ways."""

import pytest

from orchestrator.apps.verdict import Verdict, in_short, judge_clean

FAITHFUL = {"valid": True, "host_drops": 0, "late_share": 0.0}
CLEAN = {"round": 0, "retransmits": 0, "ev_transitions": 0, "drops": 0, "qp_errors": 0, "wrong_bytes": 0}


def test_a_clean_measurement_passes() -> None:
    verdict = Verdict(FAITHFUL)
    judge_clean(verdict, [CLEAN, CLEAN | {"round": 1}])
    assert (verdict.outcome, verdict.exit_code, verdict.reasons) == ("pass", 0, [])
    assert len(verdict.checks) == 5


@pytest.mark.parametrize("name", ["retransmits", "ev_transitions", "drops", "qp_errors", "wrong_bytes"])
def test_each_fault_of_a_round_fails_it(name: str) -> None:
    verdict = Verdict(FAITHFUL)
    judge_clean(verdict, [CLEAN | {name: 3}])
    assert (verdict.outcome, verdict.exit_code) == ("fail", 1)
    assert verdict.reasons == [f"no {name.replace('_', ' ')} in any round: 3 in round 0"]


def test_an_unfaithful_run_is_invalid_whatever_else_it_was() -> None:
    verdict = Verdict({"valid": False, "host_drops": 3, "late_share": 0.01})
    judge_clean(verdict, [CLEAN | {"wrong_bytes": 1}])
    assert (verdict.outcome, verdict.exit_code) == ("invalid", 3)
    record = verdict.record()
    assert record["verdict"] == "invalid"
    assert record["reasons"][0] == "not a faithful run: 3 host drops, 1.000% of frames late"
    assert len(record["reasons"]) == 2


def test_a_measurement_must_be_clean_in_every_round() -> None:
    verdict = Verdict(FAITHFUL)
    judge_clean(verdict, [CLEAN, CLEAN | {"round": 1, "drops": 2}])
    assert verdict.reasons == ["no drops in any round: 2 in round 1"]
    assert [check["holds"] for check in verdict.checks] == [True, True, False, True, True]


def test_deaths_that_are_alike_are_told_once() -> None:
    lost = "SIGKILL: host vm2 is lost: why"
    deaths = [f"p1-t0-0: {lost}", "h000: exit code 1: boom: x", f"h002: {lost}", f"h003: {lost}"]
    assert in_short(deaths) == [f"p1-t0-0 and 2 more: {lost}", "h000: exit code 1: boom: x"]
    assert in_short([]) == []
