"""Steps, stalls, messages, and the recovery from faults."""

from dataclasses import replace

import pytest

from orchestrator.measures import durations
from orchestrator.measures.measure import Question
from orchestrator.measures.spans import Interval, baseline, named, work
from orchestrator.scenario.process_kinds import ALL_REDUCE
from tests.support.recordings import BEGIN, FLAP, REBOOT, STEP, sample_recording

RUN = sample_recording()
RTT = RUN.rtt_ns


def question(*of: str, window: tuple[int, int] | None = None, fault: str = "", **more: bool | int) -> Question:
    recording = sample_recording()
    interval = work(recording) if window is None else Interval(*window)
    return Question(recording, of, (interval,), faults=tuple(named(recording, fault)), **more)  # type: ignore[arg-type]


def test_every_step_of_every_rank_is_a_figure() -> None:
    found = durations.step_time(question("train"))
    assert len(found) == 32
    assert [(one.of, one.value) for one in found if one.value != 50_000] == [("train h001", 60_000)] * 2
    assert [one.of for one in durations.step_time(question())[:1]] == ["h000"]


def test_steps_belong_to_the_windows_that_hold_them() -> None:
    second = (BEGIN + STEP, BEGIN + 2 * STEP)
    assert len(durations.step_time(question("train", window=second))) == 4
    late = (second[0] + 1, second[1])
    assert durations.step_time(question("train", window=late)) == []
    assert len(durations.step_time(question("train", window=late, touching=True))) == 4


def test_a_stall_is_what_is_left_of_a_step_after_the_computation() -> None:
    found = durations.stall(question("train"))
    assert {one.value for one in found} == {30_000, 40_000}


def test_latencies_are_those_of_the_ranks() -> None:
    found = durations.latency(question("aside"))
    assert len(found) == 96
    assert found[0].of == "aside h000"


def test_latencies_of_a_flow_are_those_that_completed_in_the_window() -> None:
    window = (BEGIN + 10_000, BEGIN + 30_000)
    found = durations.latency(question("train:h001>*", window=window))
    assert [(one.of, one.value) for one in found] == [("train:h001>h002", 9_000 + 50 * turn) for turn in (1, 2, 3)]
    assert durations.latency(question("train:h001>h003")) == []


def test_recovery_is_reckoned_from_the_fault_to_the_first_good_window() -> None:
    (figure,) = durations.recovery_rtts(question(fault="flaps", averaged_ns=RTT))
    # A window of 10 us, the RTT in whole bins, is good again when it holds no bin of the 20 us of darkness.
    assert figure.value == pytest.approx(20_000 / RTT)
    assert (figure.of, figure.start_ns, figure.end_ns) == ("flaps", FLAP[0], FLAP[0] + 20_000)
    (figure,) = durations.recovery_rtts(question("h002", fault="kill", averaged_ns=RTT))
    assert figure.of == "kill h002"
    assert figure.value == pytest.approx(20_000 / RTT)


def test_work_with_steps_is_averaged_over_one_of_them() -> None:
    recording = sample_recording()
    assert durations.step_ns(recording) == 50_000
    (figure,) = durations.recovery_rtts(question(fault="flaps"))
    # Of 50 us half of one bin of four may be missing.
    assert figure.end_ns == FLAP[0] + 15_000
    for rank in recording.programs[0].ranks:
        del rank.steps[1:]
    assert durations.step_ns(recording) == 0
    assert durations.step_ns(sample_recording(programs=[])) == 0


def test_steps_that_overlap_are_no_rhythm() -> None:
    recording = sample_recording()
    for program in recording.programs:
        program.kind = ALL_REDUCE
    assert {ALL_REDUCE} == durations.OVERLAPPING
    assert durations.step_ns(recording) == 0


def test_recovery_to_what_can_be_had_meanwhile() -> None:
    asked = question(fault="flaps", averaged_ns=RTT)
    (figure,) = durations.recovery_rtts(asked, 0.5)
    # Half of the goodput is left on the other plane all along.
    assert figure.value == 0


@pytest.mark.parametrize(("before", "after", "back"), [(0.92, 0.92, True), (1.0, 0.92, False), (0.5, 0.75, False)])
def test_goodput_is_back_where_it_fell_to_by_itself_before(before: float, after: float, back: bool) -> None:
    """Steps of a job differ: a window as low as one before the first fault is no fault."""
    recording = sample_recording()
    rows, first = recording.goodput.by_plane, baseline(recording)
    dip = sorted(start for start in rows if start >= first.start_ns)[:4]
    for start, row in rows.items():
        share = before if start in dip else after if start >= FLAP[0] else 1
        rows[start] = [int(share * size) for size in row]
    (figure,) = durations.recovery_rtts(replace(question(fault="flaps", averaged_ns=RTT), recording=recording))
    assert (figure.value is not None) == back


def test_recovery_from_the_end_of_a_fault() -> None:
    (figure,) = durations.recovery_rtts(question(fault="flaps", from_end=True))
    assert figure.value == 0
    assert figure.start_ns == FLAP[1]


def test_what_never_came_back_has_no_figure() -> None:
    recording = sample_recording()
    for start, row in recording.goodput.by_plane.items():
        if start >= REBOOT[0]:
            row[:] = [0, 0]
    (figure,) = durations.recovery_rtts(Question(recording, (), (), faults=tuple(named(recording, "kill"))))
    assert figure.value is None
    assert figure.end_ns == work(recording).end_ns


def test_avoidance_ends_with_the_last_loss_and_detection_with_the_first_retirement() -> None:
    (figure,) = durations.avoidance_rtts(question(fault="flaps"))
    assert (figure.value, figure.end_ns) == (pytest.approx(12_000 / RTT), FLAP[0] + 12_000)
    found = durations.detection_rtts(question("h00[01]"))
    assert [(one.of, one.end_ns) for one in found] == [
        ("flaps h000", FLAP[0] + 14_000),
        ("flaps h001", FLAP[0] + 14_000),
        ("kill h000", REBOOT[0] + 14_000),
        ("kill h001", REBOOT[0] + 14_000),
    ]


def test_a_fault_that_cost_nothing_was_avoided_at_once_and_never_noticed() -> None:
    recording = sample_recording(events=[])
    asked = Question(recording, (), (), faults=tuple(named(recording, "flaps")))
    assert [one.value for one in durations.avoidance_rtts(asked)] == [0.0]
    assert [one.value for one in durations.detection_rtts(asked)] == [None]


def test_of_a_fault_that_did_not_begin_there_is_nothing_to_tell() -> None:
    recording = sample_recording()
    recording.faults[1].healed_ns = REBOOT[0]
    asked = Question(recording, (), (), faults=(recording.faults[1],))
    assert durations.avoidance_rtts(asked) == []
    assert durations.detection_rtts(asked) == []
