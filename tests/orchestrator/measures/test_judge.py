"""What was expected, what was observed, and where it was worst."""

from itertools import product
from typing import Any

import pytest

from orchestrator.measures.expectation import Expectation, Span
from orchestrator.measures.judge import EXIT_CODES, judge, met, percentile, text, verdict
from orchestrator.measures.measures import MEASURES
from orchestrator.measures.recording import Look
from tests.support.recordings import BEGIN, FLAP, REBOOT, STEP, WORK_END, sample_look, sample_recording


def asked(measure: str, **what: Any) -> Expectation:
    return Expectation("it", measure, **what)


def test_goodput_is_a_share_of_line_rate_unless_told_otherwise() -> None:
    found = judge(asked("goodput", during=Span("before"), at_least=0.9), sample_recording())
    assert found.held
    assert (found.observed, found.unit, found.figures) == (pytest.approx(0.9), "share of line", 1)


def test_the_worst_bin_is_named() -> None:
    found = judge(asked("goodput", bin_ns=20_000, at_least=0.8, relative_to="baseline"), sample_recording())
    assert not found.held
    assert (found.observed, found.start_ns, found.end_ns) == (pytest.approx(0.5), FLAP[0], FLAP[0] + 20_000)
    assert (found.figures, found.outside) == (24, 2)
    assert text(found) == (
        "it: 0.5 observed, at least 0.8 expected (share of baseline), 120 to 140 us, 2 of 24 outside"
    )


def test_large_figures_are_whole_in_words() -> None:
    found = judge(asked("bytes_received", at_least=10**8, at_most=2 * 10**8), sample_recording())
    assert text(found) == (
        "it: 20,160,000 observed, at least 100,000,000 and at most 200,000,000 expected (bytes), 20 to 520 us"
    )


def test_every_bound_counts() -> None:
    assert judge(asked("retransmissions", of=("gap",), at_least=40, at_most=50), sample_recording()).held
    assert not judge(asked("retransmissions", of=("gap",), at_least=50), sample_recording()).held
    assert not judge(asked("retransmissions", of=("gap",), at_most=47), sample_recording()).held


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [("min", 50_000), ("max", 60_000), ("p50", 50_000), ("p95", 60_000), ("mean", 50_625), ("sum", 1_620_000)],
)
def test_many_figures_become_one(reduce: Any, expected: float) -> None:
    found = judge(asked("step_time", of=("train",), reduce=reduce, at_least=0), sample_recording())
    assert (found.observed, found.figures) == (expected, 1)


def test_times_can_be_put_in_relation_to_those_before_the_first_fault() -> None:
    found = judge(
        asked("step_time", of=("train",), relative_to="baseline", reduce="max", at_most=1.1), sample_recording()
    )
    # Of every rank its own.
    assert (found.observed, found.of) == (pytest.approx(1.2), "train h001")
    assert found.start_ns == BEGIN + 2 * STEP


def test_figures_of_one_bin_are_reduced_together() -> None:
    found = judge(asked("retransmissions", of=("h*",), bin_ns=20_000, at_most=39), sample_recording())
    assert (found.observed, found.start_ns) == (40, FLAP[0])


@pytest.mark.parametrize(
    ("expectation", "why"),
    [
        (asked("goodput", during=Span("fault", "gone"), at_least=0), "fault gone did not take place"),
        (asked("goodput", during=Span("interval", "", 600_000), at_least=0), "there was no such time"),
        (asked("goodput", during=Span("fault", "flaps"), bin_ns=10**9, at_least=0), "or it was shorter than a bin"),
        (asked("goodput", of=("aside:h001>h003",), at_least=0), "nothing was observed"),
    ],
)
def test_what_was_not_observed_did_not_hold(expectation: Expectation, why: str) -> None:
    found = judge(expectation, sample_recording())
    assert not found.held
    assert found.observed is None
    assert why in found.why
    assert found.why in text(found)


def test_without_a_baseline_there_is_no_share_of_it() -> None:
    recording = sample_recording()
    recording.faults[0] = recording.faults[1]
    recording.begin_ns = REBOOT[0]
    found = judge(asked("goodput", relative_to="baseline", at_least=0.5), recording)
    assert found.why == "there is no baseline to compare with"
    recording.faults = []
    found = judge(asked("goodput", during=Span("fault"), at_least=0.5), recording)
    assert found.why == "no fault took place"


def test_a_recovery_that_did_not_take_place_is_no_small_one() -> None:
    recording = sample_recording()
    for start, row in recording.goodput.by_plane.items():
        if start >= REBOOT[0]:
            row[:] = [0, 0]
    found = judge(asked("recovery_rtts", during=Span("fault", "kill"), reduce="max", at_most=10**9), recording)
    assert not found.held
    assert found.observed is None
    assert (found.of, found.end_ns) == ("kill", WORK_END)


def test_conditions_look_at_the_newest_part_only() -> None:
    slow = asked("goodput", at_most=0.7)
    looks = [sample_look(at_ns) for at_ns in range(BEGIN, FLAP[0] + 20_001, 20_000)]
    recording = sample_recording(looks=looks)
    for rank in (rank for program in recording.programs for rank in program.ranks):
        rank.state, rank.end_ns = "running", None
    assert met(slow, recording, 20_000)
    assert not met(slow, recording, 100_000)
    assert met(asked("steps", of=("train",), at_least=2), recording)
    assert not met(asked("steps", of=("train",), at_least=3), recording)
    assert not met(slow, sample_recording(looks=[Look(BEGIN, {}, {}, {}, {})]), 20_000)


def test_the_nearest_rank() -> None:
    assert [percentile([1, 2, 3, 4], share) for share in (0.25, 0.5, 0.51, 0.999)] == [1, 2, 3, 4]
    assert percentile([7], 0.5) == 7
    assert percentile(list(range(1, 21)), 0.95) == 19


def test_a_run_in_which_everything_held() -> None:
    found = verdict([asked("qp_errors", at_most=0)], sample_recording())
    assert (found.outcome, found.exit_code, found.reasons) == ("held", 0, ())
    assert [finding.asked.name for finding in found.findings] == ["it", "every byte right"]


def test_wrong_bytes_are_never_forgiven() -> None:
    recording = sample_recording()
    recording.programs[0].ranks[0].bytes_wrong = 1
    found = verdict([], recording)
    assert (found.outcome, found.exit_code) == ("not held", 1)
    assert found.reasons[0].startswith("every byte right: 1 observed, at most 0 expected")
    assert verdict([], sample_recording(programs=[])).findings == ()


def test_work_of_which_no_byte_arrived_was_not_tried() -> None:
    recording = sample_recording()
    for rank in recording.programs[1].ranks:
        rank.state, rank.bytes_received, rank.placed = "running", 0, {"h000": 0}
    assert verdict([], recording).outcome == "held", (
        "the looks of a run that was lost have what came, its ranks have not"
    )
    for look in recording.looks:
        look.flows["aside:h000>h003"] = 0
    found = verdict([], recording)
    assert (found.outcome, found.exit_code) == ("not held", 1)
    assert found.findings[0].why == "not tried: no byte of aside arrived"
    assert found.reasons[0].endswith(": not tried: no byte of aside arrived")
    # Bytes of a message that is not whole yet are bytes; and who expects that nothing comes may say so.
    assert verdict([asked("completed", of=("as*",), at_most=0)], recording).outcome == "held"
    assert verdict([asked("completed", of=("train",), at_most=1)], recording).outcome == "not held"
    recording.programs[1].ranks[-1].placed["h000"] = 1
    assert verdict([], recording).outcome == "held"


def test_work_that_is_done_without_a_byte_was_tried() -> None:
    recording = sample_recording()
    for rank in recording.programs[1].ranks:
        rank.state, rank.bytes_received, rank.placed = "done", 0, {}
    assert verdict([], recording).outcome == "held"


def test_work_that_failed_is_not_held_unless_something_was_expected_of_that() -> None:
    recording = sample_recording()
    rank = recording.programs[1].ranks[0]
    rank.state, rank.reason = "failed", "retries spent"
    found = verdict([], recording)
    assert (found.outcome, found.exit_code) == ("not held", 1)
    assert found.findings[0].why == (
        "aside failed at 1 of 2 ranks, and nothing was expected of that (completed, qp_errors)"
    )
    assert verdict([asked("completed", of=("train",), at_least=1)], recording).outcome == "not held"
    assert verdict([asked("qp_errors", of=("h001",), at_most=99)], recording).outcome == "not held"
    for expected in (
        asked("completed", of=("as*",), at_least=0.5),
        asked("completed", at_least=0.5),
        asked("qp_errors", at_most=99),
        asked("qp_errors", of=(rank.nic,), at_most=99),
    ):
        assert verdict([expected], recording).outcome == "held"
    # A fault took a rank away: that the others fail without it was asked for.
    recording.programs[1].ranks[1].state = "lost"
    assert verdict([], recording).outcome == "held"


def test_work_that_hangs_is_not_held_but_work_that_time_cut_short_is() -> None:
    recording = sample_recording(ended="length")
    recording.programs[0].ranks[2].state = "running"
    assert verdict([], recording).outcome == "held"
    recording.ended = "stalled"
    found = verdict([asked("qp_errors", at_most=99)], recording)
    assert found.outcome == "not held"
    assert "train hangs at 1 of 4 ranks" in found.reasons[0]
    assert verdict([asked("completed", at_least=0)], recording).outcome == "held"


@pytest.mark.parametrize(
    ("changed", "outcome", "reason"),
    [
        ({"fidelity": {"valid": False, "host_drops": 2, "late_share": 0.5}}, "not valid", "2 host drops, 50.000 %"),
        ({"ended": "interrupted"}, "interrupted", "interrupted before its end"),
        ({"ended": "lost", "lost": "p0-t1-0 died"}, "lost", "p0-t1-0 died"),
    ],
)
def test_what_is_graver_than_an_expectation(changed: dict[str, Any], outcome: Any, reason: str) -> None:
    found = verdict([asked("qp_errors", at_least=1)], sample_recording(**changed))
    assert found.outcome == outcome
    assert found.exit_code == EXIT_CODES[outcome]
    assert reason.replace(" %", "%") in found.reasons[0]
    assert len(found.reasons) == 2


def test_a_finding_as_plain_data() -> None:
    record = judge(
        asked("step_time", of=("train",), during=Span("after", "flaps", 5), at_most=1), sample_recording()
    ).record()
    assert record["during"] == "after flaps, without its first 5 ns"
    assert (record["observed"], record["held"], record["reduce"], record["outside"]) == (60_000, False, "each", 20)
    assert judge(asked("steps", during=Span("interval", "", 5), at_most=1), sample_recording()).record()["during"] == (
        "5 ns to the end"
    )


SPANS = (
    Span(),
    Span("fault"),
    Span("after", "kill", 1),
    Span("before"),
    Span("interval", "", 50_000, 90_000),
    Span("fault", "unknown"),
)


@pytest.mark.parametrize("looks", [0, 1, 7, 26])
@pytest.mark.parametrize("name", MEASURES)
def test_no_recording_is_too_short_to_be_judged(name: str, looks: int) -> None:
    recording = sample_recording()
    del recording.looks[looks:]
    if looks < 26:
        recording.programs = []
    measure = MEASURES[name]
    reduces: tuple[Any, ...] = (None, "sum", "mean", "min", "p95")
    for span, reduce, relative in product(SPANS, reduces, (None, *measure.relative)):
        for bin_ns in (None, 20_000) if measure.binned else (None,):
            what = asked(
                name, of=measure.labels[:2], during=span, reduce=reduce, relative_to=relative, bin_ns=bin_ns, at_most=1
            )
            found = judge(what, recording)
            assert found.held == (found.observed is not None and not found.outside)
            assert found.record()["text"].startswith("it: ")
        assert met(what, recording, 30_000) in (True, False)
