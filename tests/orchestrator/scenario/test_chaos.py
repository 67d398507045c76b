"""Chaos keeps to its budget and its seed."""

from itertools import pairwise
from statistics import mean

import pytest

from orchestrator.faults.fault import Fault
from tests.support.scenarios import complaint, small_plan

RTT = 9_424


def storm(chaos: str, extra: str = "") -> list[str]:
    return ["method:", f"  - {{name: storm, for: 300rtt, {extra} chaos: {{{chaos}}}}}"]


LOSSES = (
    "faults: [{fault: loss, for: {least: 5rtt, most: 40rtt}, mode: one}, {fault: link_down, for: 10rtt, mode: one}]"
)


def at_once(faults: tuple[Fault, ...]) -> int:
    return max(sum(other.start_ns <= one.start_ns < other.end_ns for other in faults) for one in faults)


@pytest.mark.parametrize("spacing", ["even", "uniform", "exponential"])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_never_more_at_once_than_the_budget(spacing: str, most: int) -> None:
    for seed in "abc":
        lines = storm(f"every: 4rtt, at_once_max: {most}, spacing: {spacing}, {LOSSES}")
        faults = small_plan(*lines, seed=seed).faults
        assert len(faults) > 8
        assert at_once(faults) == most
        assert all(one.end_ns <= 310 * RTT for one in faults)


def test_nothing_is_hit_twice_at_once() -> None:
    narrow = LOSSES.replace("mode: one", "mode: one, selector: {links: 'h000~*'}")
    faults = small_plan(*storm(f"every: 4rtt, at_once_max: 9, {narrow}")).faults
    assert at_once(faults) == 2
    for one in faults:
        for other in faults:
            assert (
                one is other
                or one.end_ns <= other.start_ns
                or other.end_ns <= one.start_ns
                or (one.targets != other.targets)
            )


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    lines = storm(f"every: 9rtt, at_once_max: 2, {LOSSES}")
    assert small_plan(*lines).faults == small_plan(*lines).faults
    assert small_plan(*lines).faults != small_plan(*lines, seed="other").faults


def test_a_node_is_not_away_for_too_short_a_time_at_the_end() -> None:
    reboots = "faults: [{fault: switch_reboot, for: 20rtt, mode: one}]"
    for seed in "ab":
        faults = small_plan(*storm(f"every: 1rtt, at_once_max: 9, spacing: uniform, {reboots}"), seed=seed).faults
        assert faults[-1].end_ns == 310 * RTT


def test_names_are_numbered() -> None:
    faults = small_plan(*storm(f"every: 9rtt, at_once_max: 2, {LOSSES}")).faults
    assert [fault.id for fault in faults[:3]] == ["storm-1", "storm-2", "storm-3"]


def test_weights_and_means_are_kept() -> None:
    heavy = LOSSES.replace("fault: link_down,", "fault: link_down, weight: 9,").replace("40rtt", "6rtt")
    faults = small_plan(*storm(f"every: 1rtt, at_once_max: 100, {heavy}")).faults
    downs = sum(one.kind == "link_down" for one in faults)
    assert downs > 4 * (len(faults) - downs)
    gaps = [later.start_ns - one.start_ns for one, later in pairwise(faults)]
    assert 0.7 * RTT < mean(gaps) < 1.6 * RTT


def test_flaps_and_conditions_can_be_chaos_too() -> None:
    flap = "faults: [{fault: flap, for: 20rtt, period: 5rtt, mode: one}]"
    (trigger,) = small_plan(
        *storm(f"every: 9rtt, at_once_max: 2, {flap}", "when: {measure: qp_errors, at_least: 1},")
    ).triggers
    assert len(trigger.faults) > 5
    assert trigger.faults[0].start_ns < 60 * RTT
    assert all(len(one.windows) >= 1 for one in trigger.faults)


@pytest.mark.parametrize(
    ("chaos", "what"),
    [
        ("every: 0, at_once_max: 2, " + LOSSES, "without a pause"),
        ("every: 1ns, at_once_max: 1, faults: [{fault: plane_down, for: 1ns, mode: one}]", "draws more than"),
        ("every: 1rtt, at_once_max: 0, " + LOSSES, "at_once_max: 0 will not do"),
        ("every: 1rtt, at_once_max: 1, faults: []", "wanted: a list"),
        ("every: 1rtt, at_once_max: 1, faults: [{fault: host_loss, for: 1rtt}]", "does not come back"),
        ("every: 1rtt, at_once_max: 1, faults: [{fault: loss, for: {least: 9rtt, most: 5rtt}}]", "is no span"),
        ("every: 1rtt, at_once_max: 1, faults: [{fault: loss, for: 0}]", "a fault of no length"),
        ("every: 1rtt, at_once_max: 1, faults: [{fault: los, for: 0}]", "chaos.faults[0].fault: no kind of fault"),
        ("every: 1rtt, at_once_max: 1, faults: [3]", "chaos.faults[0]: is no table"),
        ("every: 1rtt, at_once_max: 1, faults: [{fault: loss, toxicity: 0, for: 1rtt}]", "toxicity: 0 will not do"),
    ],
)
def test_what_will_not_do(chaos: str, what: str) -> None:
    assert what in complaint(storm(chaos))


def test_chaos_of_no_length() -> None:
    lines = [line.replace("for: 300rtt", "for: 0") for line in storm(f"every: 1rtt, at_once_max: 1, {LOSSES}")]
    assert "chaos of no length" in complaint(lines)
