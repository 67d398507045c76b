"""Goodput of everything, and how evenly it is spread."""

import pytest

from orchestrator.findings.measure import Figure, Question
from orchestrator.findings.rates import fairness, goodput, jain, plane_balance
from orchestrator.findings.spans import Interval
from tests.support.recordings import BEGIN, FLAP, REBOOT, WORK_END, sample_recording

CALM = Interval(200_000, 300_000)
GBPS = 1e9


def ask(*of: str, window: tuple[int, int] = CALM, binned: bool = False) -> list[Figure]:
    return goodput(Question(sample_recording(), of, (Interval(*window),), binned))


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ((), [("", 720, 800)]),
        (("h001",), [("h001", 180, 200)]),
        (("h*",), [(f"h00{number}", 180, 200) for number in range(4)]),
        (("1",), [("1", 360, 400)]),
        (("train:h001>h002",), [("train:h001>h002", 80, 200)]),
        (("aside",), [("aside", 16, 200)]),
        (("train",), [("train", 320, 800)]),
        (("unheard-of",), []),
    ],
)
def test_goodput(of: tuple[str, ...], expected: list[tuple[str, float, float]]) -> None:
    found = [(one.of, (one.value or 0) / GBPS, (one.line or 0) / GBPS) for one in ask(*of)]
    assert found == [(name, pytest.approx(rate), pytest.approx(line)) for name, rate, line in expected]


def test_a_plane_without_a_byte_is_seen() -> None:
    (figure,) = ask("1", window=(FLAP[0], FLAP[0] + 20_000))
    assert figure.value == 0
    (figure,) = ask(window=(REBOOT[0], REBOOT[0] + 20_000))
    assert figure.value == pytest.approx(540 * GBPS)


def test_a_window_without_a_whole_bin_gives_nothing() -> None:
    assert ask(window=(200_001, 204_999)) == []


def test_a_flow_is_looked_at_as_long_as_it_lasts() -> None:
    (figure,) = ask("aside", window=(460_000, 520_000))
    assert (figure.start_ns, figure.end_ns) == (460_000, WORK_END)
    assert figure.value == pytest.approx(16 * GBPS)
    assert ask("aside", window=(505_000, 520_000)) == []


def test_a_flow_that_should_go_on_is_measured_until_the_end() -> None:
    recording = sample_recording()
    receiver = recording.programs[1].ranks[1]
    receiver.state, receiver.flows["h000"]["last_ns"] = "failed", 300_000
    (figure,) = goodput(Question(recording, ("aside",), (Interval(BEGIN, WORK_END),)))
    assert figure.end_ns == WORK_END


def test_a_flow_that_is_under_way_is_known_from_the_looks_alone() -> None:
    recording = sample_recording(programs=[])
    (figure,) = goodput(Question(recording, ("aside",), (CALM,), binned=True))
    assert figure.value == pytest.approx(16 * GBPS)


def test_jain_index() -> None:
    assert jain([1, 1, 1, 1]) == 1
    assert jain([5, 0, 0, 0]) == 0.25
    assert jain([0, 0]) is None
    assert jain([]) is None


def test_fairness_over_the_flows_that_are_meant() -> None:
    def index(*of: str) -> list[float | None]:
        return [one.value for one in fairness(Question(sample_recording(), of, (CALM,)))]

    assert index("train") == [pytest.approx(1)]
    assert index() == [pytest.approx((4 * 80 + 16) ** 2 / (5 * (4 * 80**2 + 16**2)))]
    assert index("aside", "train:h003>h000") == [pytest.approx((80 + 16) ** 2 / (2 * (80**2 + 16**2)))]
    assert index("unheard-of") == []


def test_plane_balance() -> None:
    def balance(window: Interval, *of: str) -> list[tuple[str, float | None]]:
        return [(one.of, one.value) for one in plane_balance(Question(sample_recording(), of, (window,)))]

    assert balance(CALM) == [("", 1.0)]
    assert balance(Interval(FLAP[0], FLAP[0] + 20_000)) == [("", 0.0)]
    assert balance(CALM, "h000") == [("h000", 1.0)]
    assert balance(Interval(WORK_END + 10_000, WORK_END + 20_000)) == []
    assert balance(Interval(BEGIN, BEGIN)) == []
