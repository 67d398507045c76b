"""Which parts of a run a span means."""

import pytest

from mrcfabric.units import NEVER
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.expectation import Span
from orchestrator.measures.recording import Injected, Look
from orchestrator.measures.spans import (
    Interval,
    baseline,
    bins,
    first_fault_ns,
    intervals,
    named,
    recorded_ns,
    whole,
    work,
)
from tests.support.recordings import BEGIN, END, FLAP, REBOOT, WORK_END, sample_recording


def test_the_work_ends_with_the_last_rank_and_the_recording_later() -> None:
    recording = sample_recording()
    assert whole(recording) == (BEGIN, END)
    assert work(recording) == (BEGIN, WORK_END)


def test_as_long_as_a_rank_runs_the_work_goes_on_until_the_newest_look() -> None:
    recording = sample_recording(looks=[Look(100_000, {}, {}, {}, {})])
    recording.programs[0].ranks[0].state = "running"
    recording.programs[0].ranks[0].end_ns = None
    assert recorded_ns(recording) == 100_000
    assert work(recording) == (BEGIN, 100_000)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (Span(), [(BEGIN, WORK_END)]),
        (Span(start_ns=10_000), [(BEGIN + 10_000, WORK_END)]),
        (Span("fault", "flaps"), [FLAP]),
        (Span("fault", "flaps", 5_000), [(FLAP[0] + 5_000, FLAP[1])]),
        (Span("fault"), [FLAP, REBOOT]),
        (Span("after", "flaps"), [(FLAP[1], WORK_END)]),
        (Span("after"), [(REBOOT[1], WORK_END)]),
        (Span("interval", "", 10_000, 30_000), [(BEGIN + 10_000, BEGIN + 30_000)]),
        (Span("interval", "", 10_000), [(BEGIN + 10_000, WORK_END)]),
        (Span("before"), [(BEGIN, FLAP[0])]),
        (Span("fault", "unknown"), []),
        (Span("after", "unknown"), []),
        (Span("before", "", 400_000), []),
    ],
)
def test_spans(span: Span, expected: list[tuple[int, int]]) -> None:
    recording = sample_recording()
    assert intervals(span, recording, work(recording)) == expected


def test_faults_that_overlap_are_one_stretch() -> None:
    recording = sample_recording()
    recording.faults.append(Injected(Fault("x", "loss", ("a~b",), (Window(170_000, 200_000, {}),))))
    assert intervals(Span("fault"), recording, work(recording))[0] == (FLAP[0], 200_000)


def test_a_fault_that_was_healed_is_over_then_and_one_that_was_not_lasts() -> None:
    fault = Fault("x", "loss", ("a~b",), (Window(30_000, NEVER, {}),))
    recording = sample_recording(faults=[Injected(fault)])
    assert intervals(Span("after", "x"), recording, work(recording)) == []
    assert intervals(Span("fault", "x"), recording, work(recording)) == [(30_000, WORK_END)]


def test_one_entry_of_a_timetable_may_be_several_faults() -> None:
    def fault(name: str) -> Injected:
        return Injected(Fault(name, "loss", ("a~b",), (Window(30_000, 40_000, {}),)))

    recording = sample_recording(faults=[fault("drops"), fault("drops-2"), fault("drops-2-1"), fault("drops-late")])
    assert [one.fault.id for one in named(recording, "drops")] == ["drops", "drops-2", "drops-2-1"]
    assert len(named(recording, "")) == 4
    assert named(sample_recording(looks=[Look(BEGIN, {}, {}, {}, {})]), "flaps") == []


def test_the_baseline_leaves_the_first_round_trips_out() -> None:
    recording = sample_recording()
    assert first_fault_ns(recording) == FLAP[0]
    assert baseline(recording) == (BEGIN + 2 * recording.rtt_ns, FLAP[0])
    assert first_fault_ns(sample_recording(faults=[])) == NEVER
    assert baseline(sample_recording(faults=[]))[1] == WORK_END


def test_bins_lie_on_the_grid_and_are_whole() -> None:
    assert bins(Interval(3, 31), 10, 5) == [(5, 15), (15, 25)]
    assert bins(Interval(0, 20), 7, 5) == [(0, 10), (10, 20)]
    assert bins(Interval(0, 4), 7, 5) == []
