"""Entries of the timetable: targets, lengths, repetitions, figures."""

import pytest

from mrcfabric.units import NEVER
from tests.support.scenarios import complaint, small_plan

RTT = 9_424
BEGIN = 10 * RTT


def method(*entries: str) -> list[str]:
    return ["method:", *(f"  - {{name: {'abcdef'[number]}, {entry}}}" for number, entry in enumerate(entries))]


def test_a_fault_has_its_window_targets_and_figures() -> None:
    (fault,) = small_plan(
        *method("fault: loss, at: 5rtt, for: 2us, toxicity: 2%, selector: {links: h000~p0-t0-0}")
    ).faults
    assert (fault.id, fault.kind, fault.targets) == ("a", "loss", ("h000~p0-t0-0",))
    assert fault.start_ns == BEGIN + 5 * RTT
    assert fault.end_ns == fault.start_ns + 2_000
    assert fault.windows[0].figures == {"share_ppm": 20_000, "burst_packets": 1}


def test_an_entry_may_have_a_title_and_say_what_it_leaves() -> None:
    entry = "{name: a, title: A plane is gone, fault: plane_down, for: 5rtt, leaves: 50%, selector: {plane: 1}}"
    plan = small_plan(f"method: [{entry}]")
    assert (plan.faults[0].title, plan.leaves) == ("A plane is gone", {"a": 0.5})


def test_without_for_it_lasts_to_the_end() -> None:
    (fault,) = small_plan(*method("fault: link_down, selector: {links: h000~p0-t0-0}, direction: up")).faults
    assert fault.end_ns == NEVER
    assert fault.targets == ("h000>p0-t0-0",)


def test_a_repetition_is_one_fault_with_several_windows() -> None:
    (fault,) = small_plan(*method("fault: loss, every: 4rtt, for: 1rtt, times: 3, mode: one")).faults
    assert [one.start_ns - BEGIN for one in fault.windows] == [0, 4 * RTT, 8 * RTT]
    assert len(fault.targets) == 1


def test_turns_take_other_targets_each_time() -> None:
    entry = "fault: link_down, every: 4rtt, times: 4, selector: {{tier: t0-t1, plane: 0}}, mode: one, turns: {}"
    faults = small_plan(*method(entry.format("next"))).faults
    assert [fault.id for fault in faults] == ["a", "a-2", "a-3", "a-4"]
    assert len({fault.targets for fault in faults}) == 4
    assert [fault.start_ns - BEGIN for fault in faults] == [0, 4 * RTT, 8 * RTT, 12 * RTT]
    anew = small_plan(*method(entry.format("anew").replace("times: 4", "times: 12"))).faults
    assert len(anew) == 12
    assert 1 < len({fault.targets for fault in anew}) <= 4


def test_turns_of_several_at_once() -> None:
    entry = (
        "fault: link_down, every: 4rtt, times: 2, selector: {tier: t0-t1, plane: 0}, mode: fixed, value: 2, turns: next"
    )
    first, second = small_plan(*method(entry)).faults
    assert len(set(first.targets) | set(second.targets)) == 4


def test_choices_hang_on_the_seed_and_the_name() -> None:
    lines = method("fault: loss, selector: {tier: t0-t1}, mode: fixed, value: 3", "fault: loss, mode: fixed, value: 3")
    one, other = small_plan(*lines).faults
    assert one.targets != other.targets
    assert small_plan(*lines).faults == (one, other)
    assert any(small_plan(*lines, seed=str(seed)).faults[0].targets != one.targets for seed in range(5))


def test_a_ramp_and_a_flap() -> None:
    flap, ramp = small_plan(
        *method(
            "fault: loss, for: 8rtt, toxicity: 0, ramp: {to: {toxicity: 3%}, steps: 4}, mode: one",
            "fault: flap, period: 4rtt, duty: 25%, count: 2, mode: one",
        )
    ).faults
    assert [one.figures["share_ppm"] for one in ramp.windows] == [10_000, 20_000, 30_000]
    assert [(one.start_ns - BEGIN, one.end_ns - BEGIN) for one in flap.windows] == [(0, RTT), (4 * RTT, 5 * RTT)]


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("fault: loss, for: 0", "a: for"),
        ("fault: host_loss, for: 5rtt", "has no end"),
        ("fault: switch_reboot", "needs an end"),
        ("fault: flap, period: 5rtt", "flaps without an end"),
        ("fault: flap, period: 1ns, for: 5rtt", "too short"),
        ("fault: flap, period: 5rtt, for: 5rtt, duty: 100%", "less than all"),
        ("fault: flap, period: 2ns, for: 400rtt", "too many windows"),
        ("fault: loss, times: 3", "says how often, but not when"),
        ("fault: loss, turns: anew", "is for repetitions"),
        ("fault: loss, every: 0, for: 1rtt", "after no time"),
        ("fault: loss, every: 5rtt", "again before they are healed"),
        ("fault: loss, every: 5rtt, for: 6rtt", "again before they are healed"),
        ("fault: loss, every: 5rtt, turns: next", "needs to know how many"),
        ("fault: loss, every: 5rtt, times: 99, turns: next, mode: one", "99 times 1 targets are asked for"),
        ("fault: loss, every: 5rtt, for: 1rtt, when: {measure: qp_errors, at_least: 1}", "beside when"),
        ("fault: loss, ramp: {to: {toxicity: 3%}}", "has no length"),
        ("fault: loss, for: 5rtt, ramp: {to: {}}", "names no figure"),
        ("fault: loss, for: 5rtt, ramp: {to: {toxicity: 1}, over: 9rtt}", "at most as long as for"),
        ("fault: ecn_misconfigured, for: 5rtt, ramp: {to: {min_bytes: 1KiB}}", "but not from where"),
        ("fault: loss, selector: {links: h9~p0}", "selector"),
        ("fault: loss, selector: {tier: t1}", "selector.tier: t1 will not do"),
        ("fault: loss, mode: fixed", "value: mode fixed needs a value"),
        ("fault: loss, mode: fixed, value: 999", "999 are wanted"),
        ("fault: loss, at: 400rtt", "begins when the run is over"),
        ("fault: rate_limit", "rate is missing"),
        ("fault: rate_limit, rate: 100G", "rate: 100000000000 is no limit"),
        ("fault: loss, toxicity: 0", "toxicity: 0 will not do (0.0001% to 100%)"),
        ("fault: loss, toxicity: 0.00001%", "toxicity: 0 will not do (0.0001% to 100%)"),
        ('fault: loss, title: "two\\nlines"', "title: 'two\\nlines' will not do (wanted: one line without control"),
        ('fault: loss, title: "\\e[31mred"', "title: '\\x1b[31mred' will not do"),
        ("fault: black_hole", "swallows nothing"),
        ("fault: delay, delay: 0", "holds nothing back (give delay)"),
        ("fault: black_hole, usid: p9-t0-0", "no such node"),
        ("fault: switch_reboot, for: 1us", "less than"),
        (
            "fault: loss, for: 1rtt, ramp: {to: {toxicity: 150%}}",
            "toxicity: 150% will not do (wanted: a number (0 to 1)",
        ),
    ],
)
def test_what_will_not_do_is_said_with_its_line(entry: str, what: str) -> None:
    said = complaint(method(entry))
    assert said.startswith("some.yaml:8: method[0]")
    assert what.removeprefix("a: ") in said
