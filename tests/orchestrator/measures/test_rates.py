"""Goodput of everything, and how evenly it is spread."""

import pytest

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES
from orchestrator.measures.measure import Figure, Question
from orchestrator.measures.rates import fairness, goodput, jain, plane_balance
from orchestrator.measures.spans import Interval
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


def test_a_program_carries_what_its_flows_carry_together_however_they_follow_each_other() -> None:
    recording = sample_recording()
    for look in recording.looks:
        # One flow of train after the other, each at the payload rate of the line.
        turn = (look.at_ns - BEGIN) // 100_000
        for number in range(4):
            look.placed[f"train:{_nic(number - 1)}>{_nic(number)}"] = 1_000_000 * max(0, min(1, turn - number))
    (figure,) = goodput(Question(recording, ("train",), (Interval(BEGIN, WORK_END),)))
    assert figure.value == pytest.approx(4_000_000 * 8e9 / (WORK_END - BEGIN))


def _nic(number: int) -> str:
    return f"h00{number % 4}"


@pytest.mark.parametrize("packets", [0, 1, 7, 8])
def test_what_was_under_way_when_a_window_began_does_not_exceed_what_the_line_carries(packets: int) -> None:
    recording = sample_recording()
    topology = recording.topology
    line = topology.planes * topology.rate_bps
    share = topology.mtu_bytes / (topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES)
    fits = int(line * share * 20_000 / 8e9)
    last = next(look for look in recording.looks if look.at_ns == 220_000)
    first = next(look for look in recording.looks if look.at_ns == 200_000)
    last.placed["aside:h000>h003"] = first.placed["aside:h000>h003"] + fits + packets * topology.mtu_bytes
    (figure,) = goodput(Question(recording, ("aside",), (Interval(200_000, 220_000),), binned=True))
    bounded = (figure.value or 0) <= line * share * (1 + 1e-9)
    # One packet per port may have been under way; what is more than that is not explained away.
    assert bounded == (packets <= topology.planes)


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
