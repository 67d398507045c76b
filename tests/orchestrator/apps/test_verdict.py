"""From counts to a judgement: each criterion both ways."""

from typing import Any

import pytest

from orchestrator.apps.costs import payload_share
from orchestrator.apps.verdict import Verdict, in_short, judge_baseline, judge_clean, judge_demo, judge_port_share

FAITHFUL = {"valid": True, "host_drops": 0, "late_share": 0.0}
GOOD_STEPS = {"begun": 5, "finished": 5, "wrong_values": 0, "failed_ranks": 0}
TOTALS = {"qp_errors": 0}


def demo(fidelity: dict[str, Any] = FAITHFUL, **changed: Any) -> Verdict:
    verdict = Verdict(fidelity)
    steps = GOOD_STEPS | {name: changed[name] for name in GOOD_STEPS if name in changed}
    totals = {"qp_errors": changed.get("qp_errors", 0)}
    judge_demo(verdict, totals, steps, changed.get("bad_evs", 0), changed.get("ports_down", 0))
    return verdict


def test_a_clean_run_passes() -> None:
    verdict = demo()
    judge_port_share(verdict, 8, 0.86)
    judge_baseline(verdict, 0.91 * 800e9, 800e9, 0.96)
    assert (verdict.outcome, verdict.exit_code, verdict.reasons) == ("pass", 0, [])
    assert len(verdict.checks) == 7


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"wrong_values": 1}, "every byte right: 1 wrong values"),
        ({"qp_errors": 2}, "no QP failed: 2 QP errors"),
        ({"failed_ranks": 1}, "no rank failed: 1 ranks failed"),
        ({"finished": 4}, "no step lost: 4 of 5 steps"),
        ({"bad_evs": 3}, "every EV GOOD or SKIP at the end: 3 EVs elsewhere, 0 NIC ports down"),
        ({"ports_down": 1}, "every EV GOOD or SKIP at the end: 0 EVs elsewhere, 1 NIC ports down"),
    ],
)
def test_each_fault_of_a_run_fails_it(changed: dict[str, int], reason: str) -> None:
    verdict = demo(**changed)
    assert (verdict.outcome, verdict.exit_code, verdict.reasons) == ("fail", 1, [reason])


@pytest.mark.parametrize(("share", "holds"), [(0.875, True), (0.826, True), (0.924, True), (0.82, False), (1.0, False)])
def test_one_port_down_costs_its_share(share: float, holds: bool) -> None:
    verdict = Verdict(FAITHFUL)
    judge_port_share(verdict, 8, share)
    assert (verdict.outcome == "pass") is holds


@pytest.mark.parametrize(
    ("mtu_bytes", "share", "holds"), [(4096, 0.9, True), (4096, 0.899, False), (1024, 0.81, True), (1024, 0.8, False)]
)
def test_the_nic_must_be_the_bottleneck(mtu_bytes: int, share: float, holds: bool) -> None:
    verdict = Verdict(FAITHFUL)
    judge_baseline(verdict, share * 1e12, 1e12, payload_share(mtu_bytes))
    assert (verdict.outcome == "pass") is holds
    least = {4096: "0.9", 1024: "0.81"}[mtu_bytes]
    assert verdict.checks[0]["name"] == f"goodput before the faults at least {least} of line rate"


def test_an_unfaithful_run_is_invalid_whatever_else_it_was() -> None:
    verdict = demo({"valid": False, "host_drops": 3, "late_share": 0.01}, wrong_values=1)
    assert (verdict.outcome, verdict.exit_code) == ("invalid", 3)
    record = verdict.record()
    assert record["verdict"] == "invalid"
    assert record["reasons"][0] == "not a faithful run: 3 host drops, 1.000% of frames late"
    assert len(record["reasons"]) == 2


def test_a_measurement_must_be_clean_in_every_round() -> None:
    clean = {"round": 0, "retransmits": 0, "ev_transitions": 0, "drops": 0, "qp_errors": 0, "wrong_bytes": 0}
    verdict = Verdict(FAITHFUL)
    judge_clean(verdict, [clean, clean | {"round": 1, "drops": 2}])
    assert verdict.reasons == ["no drops in any round: 2 in round 1"]
    assert [check["holds"] for check in verdict.checks] == [True, True, False, True, True]


def test_deaths_that_are_alike_are_told_once() -> None:
    lost = "SIGKILL: host vm2 is lost: why"
    deaths = [f"p1-t0-0: {lost}", "h000: exit code 1: boom: x", f"h002: {lost}", f"h003: {lost}"]
    assert in_short(deaths) == [f"p1-t0-0 and 2 more: {lost}", "h000: exit code 1: boom: x"]
    assert in_short([]) == []
