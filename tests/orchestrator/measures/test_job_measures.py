"""The measures of jobs are the figures of their bills, of each job by itself or of all together."""

from orchestrator.measures.job import bill
from orchestrator.measures.job_measures import JOB_MEASURES
from orchestrator.measures.measure import Question
from orchestrator.measures.spans import whole
from tests.support.recordings import sample_recording


def test_each_is_a_figure_of_the_bill() -> None:
    recording = sample_recording()
    train = recording.programs[0]
    paid = bill(train, recording.end_ns)
    assert paid is not None
    wanted = {"restarts": paid.restarts, "steps_lost": paid.steps_lost, "steps_redone": paid.steps_redone,
              "idle": paid.idle_ns, "cost": paid.cost_of_failures, "availability": paid.availability}  # fmt: skip
    assert set(wanted) == set(JOB_MEASURES)
    for name, value in wanted.items():
        figures = JOB_MEASURES[name].take(Question(recording, ("train",), (whole(recording),)))
        assert [(one.value, one.of) for one in figures] == [(value, "train")]
        assert not JOB_MEASURES[name].take(Question(recording, ("aside",), (whole(recording),)))
