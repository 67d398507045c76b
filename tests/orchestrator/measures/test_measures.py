"""The table of measures."""

from typing import get_args

import pytest

from orchestrator.measures.measure import Measure, Of, Question, Reduce
from orchestrator.measures.measures import MEASURES, find
from orchestrator.measures.spans import named, whole
from tests.support.recordings import sample_recording


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_answers_about_a_whole_run(name: str) -> None:
    recording = sample_recording()
    recording.links = []
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


def test_a_measure_is_found_by_its_name() -> None:
    found: Measure = find("goodput", "here")
    assert found is MEASURES["goodput"]
