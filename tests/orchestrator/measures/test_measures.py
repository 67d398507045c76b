"""The table of measures, and the check of what is asked against it."""

from typing import Any, get_args

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.measures.expectation import Expectation, Span
from orchestrator.measures.measure import Measure, Of, Question, Reduce
from orchestrator.measures.measures import MEASURES, check, find
from orchestrator.measures.spans import named, whole
from tests.support.recordings import sample_recording, sample_topology


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_answers_about_a_whole_run(name: str) -> None:
    recording = sample_recording()
    recording.looks[0].nics["h000"].rates = {"mean": 100, "min": 50}
    measure = MEASURES[name]
    of = measure.labels[:1] if measure.of_needed else ()
    question = Question(recording, of, (whole(recording),), faults=tuple(named(recording, "")))
    assert measure.take(question)
    assert measure.meaning.endswith(".")
    assert measure.reduce in get_args(Reduce)


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_answers_about_a_run_of_nothing(name: str) -> None:
    recording = sample_recording(
        looks=[], programs=[], faults=[], events=[], goodput=type(sample_recording().goodput)(5_000, 2), fidelity={}
    )
    for figure in MEASURES[name].take(Question(recording, (), (whole(recording),))):
        assert figure.value in (0, 1)


@pytest.mark.parametrize("name", [name for name, measure in MEASURES.items() if Of.PROGRAM in measure.of])
def test_measures_of_programs_can_be_told_of_one(name: str) -> None:
    recording = sample_recording()
    found = MEASURES[name].take(Question(recording, ("train",), (whole(recording),)))
    assert found
    assert all(figure.of.startswith("train") for figure in found)


def refusal(measure: str, **asked: Any) -> str:
    asked = {"at_least": 1} | asked
    with pytest.raises(ConfigError) as caught:
        check(Expectation("x", measure, **asked), "expect.0", sample_topology(), ("train", "aside"), ("flaps",))
    return str(caught.value)


@pytest.mark.parametrize(
    ("measure", "asked", "part"),
    [
        ("godput", {}, "nearest is goodput"),
        ("goodput", {"at_least": None}, "has no bound"),
        ("goodput", {"at_least": 2, "at_most": 1}, "nothing is at least 2 and at most 1"),
        ("step_time", {"bin_ns": 5_000}, "cannot be told bin by bin"),
        ("goodput", {"bin_ns": 0}, "a width above 0"),
        ("qp_errors", {"relative_to": "line"}, "is not told relative to line"),
        ("step_time", {"relative_to": "line"}, "baseline"),
        ("step_time", {"reduce": "p42"}, "p95"),
        ("goodput", {"during": Span("fault", "kill")}, "no fault is called 'kill' (faults are flaps)"),
        ("goodput", {"during": Span("interval", "", 5, 5)}, "ends before it begins"),
        ("evs", {}, "needs to know of what"),
        ("marks", {"of": ("h000",)}, "all together only"),
        ("goodput", {"of": ("h004",)}, "the measure of nothing"),
        ("goodput", {"of": ("2",)}, "a plane as 5"),
        ("goodput", {"of": ("ring",)}, "a workload by its name"),
        ("goodput", {"of": ("ring:h000>h001",)}, "a flow as"),
        ("retransmissions", {"of": ("gasp",)}, "one of gap, timeout"),
        ("retransmissions", {"of": ("h000:gasp",)}, "the measure of nothing"),
        ("evs", {"of": ("2:assumed_bad",)}, "the measure of nothing"),
        ("goodput", {"of": ("*",)}, "may mean a nic or a plane or a program"),
    ],
)
def test_what_can_never_be_judged_is_refused(measure: str, asked: dict[str, Any], part: str) -> None:
    message = refusal(measure, **asked)
    assert message.startswith("expect.0: ")
    assert part in message


@pytest.mark.parametrize(
    ("measure", "of"),
    [
        ("goodput", ("h00*", "1", "train", "aside:h000>h003")),
        ("retransmissions", ("h003:timeout", "gap", "h*")),
        ("evs", ("1:assumed_bad", "denied", "h*:skip")),
        ("drops", ("icrc", "switches", "switches:unknown_usid")),
        ("fidelity", ("host_drops",)),
        ("recovery_rtts", ("h001",)),
    ],
)
def test_what_means_something_is_let_through(measure: str, of: tuple[str, ...]) -> None:
    check(Expectation("x", measure, of=of, at_most=1), "expect.0", sample_topology(), ("train", "aside"), ())


def test_a_measure_is_found_by_its_name() -> None:
    found: Measure = find("goodput", "here")
    assert found is MEASURES["goodput"]
