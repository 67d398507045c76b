"""What was counted between looks, and how things stood at one."""

import pytest

from orchestrator.measures import counts
from orchestrator.measures.measure import Question
from orchestrator.measures.measures import MEASURES
from orchestrator.measures.spans import Interval
from tests.support.recordings import BEGIN, END, FLAP, sample_recording

LOSSES = counts.counted(counts.by_label("retransmits.", ("gap", "timeout", "nack")))


def ask(
    take: object, *of: str, windows: tuple[tuple[int, int], ...] = ((BEGIN, END),), binned: bool = False
) -> list[tuple[str, float | None]]:
    question = Question(sample_recording(), of, tuple(Interval(*window) for window in windows), binned)
    return [(figure.of, figure.value) for figure in take(question)]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ((), [("", 64)]),
        (("gap",), [("gap", 48)]),
        (("nack",), [("nack", 0)]),
        (("h001",), [("h001", 16)]),
        (("h001:timeout",), [("h001:timeout", 4)]),
        (("h00[01]:gap",), [("h000:gap", 12), ("h001:gap", 12)]),
        (("unheard-of",), []),
    ],
)
def test_a_counter_with_labels(of: tuple[str, ...], expected: list[tuple[str, float]]) -> None:
    assert ask(LOSSES, *of) == expected


def test_a_window_reaches_to_the_looks_around_it() -> None:
    question = Question(sample_recording(), (), (Interval(FLAP[0] + 1, FLAP[0] + 2),))
    (figure,) = LOSSES(question)
    assert (figure.value, figure.start_ns, figure.end_ns) == (40, FLAP[0], FLAP[0] + 20_000)


def test_bins_count_nothing_twice() -> None:
    bins = tuple((start, start + 30_000) for start in range(BEGIN, END - 30_000, 30_000))
    found = ask(LOSSES, windows=bins, binned=True)
    assert sum(value or 0 for _, value in found) == 64


def test_plain_counters_and_those_of_switches() -> None:
    assert ask(counts.counted(counts.of_nics("packets_lost")), "h00[23]") == [("h002", 16), ("h003", 16)]
    assert ask(counts.counted(counts.of_nics("packets_lost"))) == [("", 64)]
    assert ask(counts.counted(counts.of_switches("trimmed"))) == [("", 16)]


def test_what_was_sent_for_nothing_is_spurious_beside_what_was_taken_back() -> None:
    assert ask(MEASURES["spurious"].take) == [("", 16)]
    assert ask(MEASURES["duplicates"].take) == [("", 8)]


def test_windows_and_queues_as_they_stood_at_every_look() -> None:
    recording = sample_recording()
    for number, look in enumerate(recording.looks):
        look.nics["h000"].windows = {"cwnd": 100 + number, "cwnd_min": 10, "inflight": 5}
        look.nics["h001"].windows = {"cwnd": 50, "cwnd_min": 20, "inflight": 7}
        look.queues = {"h000": number, "p0-t1-0": 3}
        look.queue_peaks = {"h000": 9 + number}
    window = (Interval(BEGIN, BEGIN + 40_000),)

    def told(name: str, *of: str) -> list[float | None]:
        return [figure.value for figure in MEASURES[name].take(Question(recording, of, window))]

    assert told("window", "cwnd") == [150, 151, 152]
    assert told("window", "cwnd_min") == [10, 10, 10]
    assert told("window", "h001:inflight") == [7, 7, 7]
    assert told("queue") == [3, 3, 3]
    assert told("queue", "h000") == [0, 1, 2]
    assert told("queue_peak") == [11]


def test_rates_are_of_nics_that_have_any() -> None:
    recording = sample_recording()
    take = counts.levels(counts.rates)
    whole = Question(recording, (), (Interval(BEGIN, END),))
    assert take(whole) == []
    told = {"h000": (100, 40), "h002": (60, 60)}
    look = recording.looks[3]
    for nic, (mean, least) in told.items():
        look.nics[nic].rates = {"mean": mean, "min": least}
    assert [(figure.of, figure.value, figure.start_ns) for figure in take(whole)] == [("", 80, look.at_ns)]
    names = Question(recording, ("min", "h00*", "h002:min"), (Interval(BEGIN, END),))
    assert {figure.of: figure.value for figure in take(names)} == {
        "min": 40, "h000": 100, "h002": 60, "h002:min": 60,
    }  # fmt: skip


def test_pauses_are_those_of_nics_and_switches() -> None:
    recording = sample_recording()
    last = recording.looks[-1]
    last.switches["pause_ns"] = 900
    last.nics["h001"].counts["pause_ns"] = 100
    window = (Interval(BEGIN, END),)
    for of, expected in (((), 1_000), (("h001",), 100), (("h000",), 0)):
        found = MEASURES["paused"].take(Question(recording, of, window))
        assert [figure.value for figure in found] == [expected]


def test_drops_of_switches_are_in_the_sum() -> None:
    take = counts.counted(counts.by_label("drops.", switches=True))
    assert ask(take) == [("", 4)]
    assert ask(take, "switches:unknown_usid") == [("switches:unknown_usid", 0)]


def test_evs_as_they_stood_at_the_end_of_a_window() -> None:
    take = counts.standing(counts.ev_states)
    during = ((FLAP[0], FLAP[1]),)
    assert ask(take, "assumed_bad", windows=during) == [("assumed_bad", 16)]
    assert ask(take, "1:assumed_bad", "0:assumed_bad", windows=during) == [("0:assumed_bad", 0), ("1:assumed_bad", 16)]
    assert ask(take, "h002:assumed_bad", windows=during) == [("h002:assumed_bad", 4)]
    assert ask(take, "assumed_bad") == [("assumed_bad", 0)]


def test_steps_flows_and_ports() -> None:
    assert ask(counts.counted(counts.steps), "train") == [("train", 8)]
    assert ask(counts.counted(counts.steps), "train", windows=((BEGIN, BEGIN + 120_000),)) == [("train", 2)]
    assert ask(counts.counted(counts.received), "aside", "train:h003>h000") == [
        ("train:h003>h000", 4_800_000),
        ("aside", 960_000),
    ]
    assert ask(counts.standing(counts.ports_down), "1", "h000") == [("h000", 0), ("1", 0)]


def test_without_a_look_nothing_is_known() -> None:
    question = Question(sample_recording(looks=[]), (), (Interval(BEGIN, END),))
    assert LOSSES(question) == []
    assert counts.standing(counts.ev_states)(question) == []
    late = Question(sample_recording(), (), (Interval(0, BEGIN - 1),))
    assert counts.standing(counts.ev_states)(late) == []
