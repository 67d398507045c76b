"""What charts show of a recording."""

from orchestrator.measures.recording import Injected, Look, ProgramResult
from orchestrator.report.axis import TimeAxis
from orchestrator.report.series import (
    ROWS_MAX,
    StepTime,
    fault_bands,
    held,
    histogram,
    one_per_step,
    rates,
    step_times,
    time_axis,
)
from tests.support.plans import FLAP
from tests.support.recordings import BEGIN, BIN, END, sample_programs, sample_recording


def look(at_ns: int, count: int) -> Look:
    return Look(at_ns, {}, {"marks": count}, {}, {})


def marks(look: Look) -> list[float]:
    return [float(look.switches["marks"])]


AXIS = TimeAxis(0, 60)


def test_the_axis_goes_from_begin_to_end_in_steps_of_whole_bins() -> None:
    axis, step_ns, rows = time_axis(sample_recording())
    assert (axis.start_ns, axis.end_ns, axis.zero_ns, step_ns) == (BEGIN, END, BEGIN, BIN)
    assert len(rows) == (END - BEGIN) // BIN
    assert rows[0] == [360.0, 360.0]
    long = sample_recording(end_ns=BEGIN + 10_000 * BIN)
    axis, step_ns, rows = time_axis(long)
    assert len(rows) <= ROWS_MAX
    assert axis.end_ns - axis.start_ns == len(rows) * step_ns >= 10_000 * BIN


def test_what_a_look_said_holds_until_the_next() -> None:
    rows = held([look(10, 1), look(35, 2)], AXIS, 10, marks, [0.0])
    assert rows == [[1.0], [1.0], [1.0], [2.0], [2.0], [2.0]]
    assert held([look(35, 2)], AXIS, 10, marks, [0.0])[:3] == [[0.0]] * 3
    assert held([], AXIS, 10, marks, [0.0]) == [[0.0]] * 6


def test_counters_grow_evenly_between_two_looks() -> None:
    rows = rates([look(0, 0), look(20, 4), look(30, 4), look(50, 14)], AXIS, 10, marks, 10, [0.0])
    assert rows == [[2.0], [2.0], [0.0], [5.0], [5.0], [0.0]]
    assert rates([look(0, 0), look(0, 4)], AXIS, 10, marks, 10, [0.0]) == [[0.0]] * 6
    assert rates([look(0, 0)], AXIS, 10, marks, 10, [0.0]) == [[0.0]] * 6


def test_of_many_looks_the_last_of_every_step_is_drawn_and_nothing_is_uncounted() -> None:
    looks = [look(at_ns, at_ns) for at_ns in range(3, 60, 2)]
    chosen = one_per_step(looks, AXIS, 10)
    assert [one.at_ns for one in chosen] == [3, 9, 19, 29, 39, 49, 59]
    assert one_per_step(looks[:1], AXIS, 10) == looks[:1]
    assert one_per_step([], AXIS, 10) == []
    assert rates(chosen, AXIS, 10, marks, 10, [0.0])[1:] == [[10.0]] * 5


def test_a_step_goes_from_the_first_begin_to_the_last_end() -> None:
    train, aside = sample_programs()
    steps = step_times(train)
    assert len(steps) == 8
    assert steps[2] == StepTime(2, BEGIN + 120_000, BEGIN + 180_000, 40_000)
    assert steps[2].length_ns == 60_000
    train.ranks[3].steps.pop()
    assert len(step_times(train)) == 7
    assert step_times(aside) == []
    assert step_times(ProgramResult("none", "p2p", [])) == []


def test_a_histogram_counts_everything_once() -> None:
    assert histogram([5, 5, 5]) == ([3], 5, 1)
    counts, low, width = histogram(list(range(1000)), 10)
    assert (sum(counts), low, width) == (1000, 0, 100)
    assert len(counts) == 10
    for values in ([1, 2], [0, 31], [0, 1, 1_000_000], [7, 36]):
        counts, low, width = histogram(values)
        assert sum(counts) == len(values)
        assert counts[0]
        assert counts[-1]
        assert len(counts) <= 31


def test_bands_end_where_a_fault_was_healed_or_the_run_ended() -> None:
    healed = Injected(FLAP, healed_ns=65_000)
    never = Injected(FLAP, healed_ns=30_000)
    (first, second, third) = fault_bands([Injected(FLAP), healed, never], 1_000_000)
    assert first.windows == ((40_000, 50_000), (60_000, 70_000))
    assert second.windows == ((40_000, 50_000), (60_000, 65_000))
    assert third.windows == ()
    assert [band.number for band in (first, second, third)] == [1, 2, 3]
    assert fault_bands([Injected(FLAP)], 62_000)[0].windows[-1] == (60_000, 62_000)
