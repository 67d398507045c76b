"""What must hold, and conditions: spans, bounds in the unit of the measure, and what cannot be asked."""

import pytest

from orchestrator.measures.expectation import Expectation, Span
from tests.support.recordings import sample_recording
from tests.support.scenarios import complaint, small_plan

RTT = 9_424
FAULT = ["method:", "  - {name: cut, fault: link_down, at: 20rtt, for: 5rtt, mode: one}"]


def expected(entry: str, *, key: str = "expect") -> Expectation:
    (one,) = small_plan(*FAULT, f"{key}:", f"  - {{{entry}}}").expectations
    return one


@pytest.mark.parametrize(
    ("words", "span"),
    [
        ("", Span()),
        ("skip: 2rtt", Span("run", "", 2 * RTT)),
        ("during: cut", Span("fault", "cut")),
        ("during: faults, skip: 1rtt", Span("fault", "", RTT)),
        ("after: cut", Span("after", "cut")),
        ("after: faults", Span("after", "")),
        ("from: 1rtt, to: 3rtt", Span("interval", "", RTT, 3 * RTT)),
        ("from: 1rtt", Span("interval", "", RTT)),
        ("to: 3rtt", Span("interval", "", 0, 3 * RTT)),
    ],
)
def test_spans(words: str, span: Span) -> None:
    assert expected(f"measure: goodput, at_least: 0.5, {words}").during == span


def test_the_steady_state_is_before_the_first_fault() -> None:
    one = expected("measure: goodput, at_least: 50%", key="steady_state")
    assert one.during == Span("before")
    assert one.at_least == 0.5
    assert one.name == "goodput in the steady state"


@pytest.mark.parametrize(
    ("words", "bound"),
    [
        ("measure: goodput, at_most: 90%", 0.9),
        ("measure: goodput, at_most: 0.9", 0.9),
        ("measure: step_time, at_most: 2us", 2_000),
        ("measure: step_time, at_most: 2rtt", 2 * RTT),
        ("measure: step_time, at_most: 1.2, relative_to: baseline", 1.2),
        ("measure: recovery_rtts, at_most: 20, after: cut", 20),
        ("measure: recovery_rtts, at_most: 20rtt, after: cut", 20),
        ("measure: recovery_rtts, at_most: 94240ns, after: cut", 10),
        ("measure: bytes_verified, at_most: 1KiB", 1024),
        ("measure: qp_errors, at_most: 0", 0),
    ],
)
def test_bounds_are_in_the_unit_of_the_measure(words: str, bound: float) -> None:
    assert expected(words).at_most == bound


def test_names_tell_what_and_differ() -> None:
    assert expected("measure: goodput, of: h000, during: cut, bin: 200ms, at_least: 0").name == (
        "goodput of h000 during cut per 200ms"
    )
    assert expected("measure: goodput, name: it holds, at_least: 0").name == "it holds"
    twice = small_plan("expect:", *["  - {measure: qp_errors, at_most: 0}"] * 3).expectations
    assert [one.name for one in twice] == ["qp_errors", "qp_errors (2)", "qp_errors (3)"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("measure: gootput, at_least: 1", "no measure is called 'gootput' (nearest is goodput)"),
        ("measure: goodput", "has no bound"),
        ('measure: qp_errors, at_most: 0, name: "two\\nlines"', "name: 'two\\nlines' will not do"),
        ("measure: retransmissions, at_most: -1", "is never at most -1 (no figure is below 0)"),
        ("measure: completed, at_least: 101%", "is never at least 1.01 (a share is at most 1, as 90%)"),
        ("measure: goodput, at_least: 2us", "2us is no bound for this (it is a share, as 90% or 0.9)"),
        (
            "measure: step_time, at_most: 100000",
            "at_most: 100000 is no bound for this (it is a length, as 40us or 3rtt)",
        ),
        ("measure: step_time, at_least: 0.5", "0.5 is no bound for this (it is a length"),
        ("measure: qp_errors, at_most: 5%", "it is a number"),
        ("measure: recovery_rtts, at_most: 5%, after: cut", "a number of base RTTs"),
        ("measure: bytes_verified, at_most: 5us", "a number of bytes"),
        ("measure: goodput, at_least: 1, during: cutt", "no fault is called 'cutt'"),
        ("measure: goodput, at_least: 1, during: cut, after: cut", "cannot stand beside during"),
        ("measure: goodput, at_least: 1, during: cut, from: 1rtt", "cannot stand beside during"),
        ("measure: goodput, at_least: 1, from: 1rtt, skip: 1rtt", "says nothing beside from and to"),
        ("measure: goodput, at_least: 1, of: h999", "is the measure of nothing"),
        ("measure: goodput, at_least: 1, from: 3rtt, to: 1rtt", "ends before it begins"),
    ],
)
def test_what_cannot_be_asked_is_said_with_its_line(words: str, what: str) -> None:
    said = complaint([*FAULT, "expect:", f"  - {{{words}}}"])
    assert said.startswith("some.yaml:10: expect[0]")
    assert what in said


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("measure: goodput, at_least: 1, during: cut", "said already"),
        ("measure: goodput, at_least: 1, from: 1rtt", "steady_state[0].from: is said already"),
        ("measure: goodput, at_least: 1, relative_to: baseline", "is the baseline"),
    ],
)
def test_what_the_steady_state_cannot_be_asked(words: str, what: str) -> None:
    assert what in complaint([*FAULT, "steady_state:", f"  - {{{words}}}"])


@pytest.mark.parametrize("words", ["relative_to: baseline", "during: faults", "after: faults"])
def test_without_faults_there_is_nothing_to_compare_with(words: str) -> None:
    assert "there is no fault in this scenario" in complaint(
        ["expect:", f"  - {{measure: goodput, at_least: 1, {words}}}"]
    )


def condition(words: str) -> list[str]:
    return ["method:", f"  - {{name: cut, fault: link_down, for: 5rtt, mode: one, {words}}}"]


@pytest.mark.parametrize(
    ("when", "text", "holds"),
    [
        ("{measure: steps, at_least: 1}", "steps at least 1", True),
        ("{measure: steps, at_least: 1000}", "steps at least 1000", False),
        ("{measure: qp_errors, at_least: 1}", "qp_errors at least 1", False),
        ("{measure: goodput, at_most: 90%, over: 1rtt}", "goodput over 1rtt at most 90%", True),
    ],
)
def test_conditions_are_asked_of_what_was_recorded(when: str, text: str, holds: bool) -> None:
    (trigger,) = small_plan(*condition(f"when: {when}")).triggers
    assert trigger.text == text
    assert trigger.holds(sample_recording()) == holds


def test_a_condition_is_not_asked_before_its_time() -> None:
    (trigger,) = small_plan(*condition("at: 399rtt, when: {measure: steps, at_least: 1}")).triggers
    assert not trigger.holds(sample_recording())


def test_a_rate_is_not_asked_of_a_time_before_the_work() -> None:
    """Nobody sends yet, and less than any bound arrives: that is not what the condition means."""
    recording, plan = sample_recording(), small_plan()
    rtts = (recording.looks[-1].at_ns - plan.programs[0].begin_ns) // plan.topology.base_rtt_ns()
    for over, asked in ((rtts, True), (rtts + 1, False)):
        (trigger,) = small_plan(*condition(f"when: {{measure: goodput, at_most: 1, over: {over}rtt}}")).triggers
        assert trigger.holds(recording) == asked


@pytest.mark.parametrize(
    ("when", "what"),
    [
        ("{measure: goodput, at_most: 1}", "goodput of how long? (over: 10rtt)"),
        ("{measure: goodput, at_most: 1, over: 0}", "looks at no time at all"),
        ("{measure: steps}", "has no bound"),
        ("{measure: steps, of: other, at_least: 1}", "is the measure of nothing"),
        ("{measure: stepps, at_least: 1}", "no measure is called"),
        ("{at_least: 1}", "measure is missing"),
    ],
)
def test_conditions_that_will_not_do(when: str, what: str) -> None:
    said = complaint(condition(f"when: {when}"))
    assert said.startswith("some.yaml:8: method[0].when")
    assert what in said
