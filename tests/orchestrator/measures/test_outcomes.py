"""What came of the work and of the emulation."""

from orchestrator.measures import outcomes
from orchestrator.measures.measure import Question
from orchestrator.measures.spans import Interval
from tests.support.recordings import BEGIN, END, sample_recording

WINDOW = (Interval(BEGIN, END),)


def test_ranks_that_are_done() -> None:
    recording = sample_recording()
    recording.programs[0].ranks[2].state = "failed"
    take = outcomes.of_ranks(outcomes.done_share)
    assert [(one.of, one.value) for one in take(Question(recording, ("train", "aside"), WINDOW))] == [
        ("train", 0.75),
        ("aside", 1.0),
    ]
    assert [one.value for one in take(Question(recording, (), WINDOW))] == [5 / 6]
    assert take(Question(sample_recording(programs=[]), (), WINDOW)) == []


def test_bytes_compared() -> None:
    recording = sample_recording()
    recording.programs[1].ranks[1].bytes_wrong = 7
    asked = Question(recording, (), WINDOW)
    assert [one.value for one in outcomes.of_ranks(outcomes.verified)(asked)] == [4 * 4_800_000 + 960_000]
    assert [one.value for one in outcomes.of_ranks(outcomes.wrong)(asked)] == [7]


def test_fidelity_and_what_is_behind_it() -> None:
    recording = sample_recording(fidelity={"valid": False, "host_drops": 3, "why": "overload"})
    assert [one.value for one in outcomes.fidelity(Question(recording, (), WINDOW))] == [0.0]
    assert [one.value for one in outcomes.fidelity(Question(recording, ("host_drops", "why"), WINDOW))] == [3.0]


def test_faults_that_were_over() -> None:
    recording = sample_recording()
    assert [one.value for one in outcomes.faults_over(Question(recording, (), WINDOW))] == [2]
    recording.looks = recording.looks[:10]
    still = sum(one.over_ns <= recording.looks[-1].at_ns for one in recording.faults)
    assert still < 2
    assert [one.value for one in outcomes.faults_over(Question(recording, (), WINDOW))] == [still]
