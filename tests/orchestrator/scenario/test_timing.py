"""Repetitions, flaps and ramps as windows."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from orchestrator.faults.fault import Window
from orchestrator.scenario import timing
from orchestrator.scenario.timing import Flap, Slope

HALF = Fraction(1, 2)


def spans(windows: list[Window]) -> list[tuple[int, int]]:
    return [(one.start_ns, one.end_ns) for one in windows]


def test_starts() -> None:
    assert timing.starts(None, None, 100) == [0]
    assert timing.starts(30, None, 100) == [0, 30, 60, 90]
    assert timing.starts(30, 2, 100) == [0, 30]
    assert timing.starts(30, None, 90) == [0, 30, 60]
    with pytest.raises(timing.TooManyError):
        timing.starts(1, None, 1 << 40)


def test_a_plain_fault_has_one_window() -> None:
    assert timing.plain(5, 10, {"a": 1}) == [Window(5, 15, {"a": 1})]
    assert timing.plain(5, None, {})[0].end_ns == NEVER


def test_a_flap_is_away_for_its_share_of_each_period() -> None:
    flap = Flap(10, Fraction(3, 10), None, 0)
    assert spans(timing.flaps(100, 25, {}, flap, Rng("x"))) == [(100, 103), (110, 113), (120, 123)]


def test_a_flap_ends_with_its_length_and_by_its_count() -> None:
    assert spans(timing.flaps(0, 12, {}, Flap(10, HALF, None, 0), Rng("x"))) == [(0, 5), (10, 12)]
    assert spans(timing.flaps(0, None, {}, Flap(10, HALF, 3, 0), Rng("x"))) == [(0, 5), (10, 15), (20, 25)]
    assert spans(timing.flaps(0, 15, {}, Flap(10, HALF, 9, 0), Rng("x"))) == [(0, 5), (10, 15)]
    with pytest.raises(timing.TooManyError):
        timing.flaps(0, 1 << 40, {}, Flap(2, HALF, None, 0), Rng("x"))


def test_jitter_makes_flaps_late_and_is_the_same_each_time() -> None:
    flap = Flap(100, HALF, None, 40)
    first = timing.flaps(0, 1000, {}, flap, Rng("x"))
    assert first == timing.flaps(0, 1000, {}, flap, Rng("x"))
    assert first != timing.flaps(0, 1000, {}, flap, Rng("y"))
    late = [one.start_ns - number * 100 for number, one in enumerate(first)]
    assert all(0 <= by <= 40 for by in late)
    assert len(set(late)) > 1


def test_a_ramp_goes_step_by_step_and_stays() -> None:
    windows = timing.ramp(10, 100, {"share_ppm": 0, "burst_packets": 1}, Slope({"share_ppm": 90}, 40, 4))
    assert spans(windows) == [(20, 30), (30, 40), (40, 110)]
    assert [one.figures["share_ppm"] for one in windows] == [30, 60, 90]
    assert all(one.figures["burst_packets"] == 1 for one in windows)


def test_a_ramp_without_end() -> None:
    windows = timing.ramp(0, None, {"delay_ns": 10}, Slope({"delay_ns": 5}, 10, 2))
    assert spans(windows) == [(0, 5), (5, NEVER)]


def test_moved_and_joined() -> None:
    assert timing.moved([Window(0, 5, {}), Window(7, NEVER, {})], 10) == (Window(10, 15, {}), Window(17, NEVER, {}))
    assert timing.joined([Window(7, 9, {}), Window(0, 5, {}), Window(5, 6, {}), Window(1, 2, {})]) == [
        Window(0, 6, {}),
        Window(7, 9, {}),
    ]
    with pytest.raises(ValueError):  # noqa: PT011
        timing.joined([Window(0, 5, {"a": 1}), Window(4, 6, {"a": 2})])


@given(
    st.integers(2, 1000), st.fractions(Fraction(1, 100), Fraction(99, 100)), st.integers(0, 3000), st.integers(1, 5000)
)
def test_windows_of_a_flap_are_in_order_within_its_length(
    period: int, duty: Fraction, jitter: int, lasting: int
) -> None:
    windows = timing.joined(timing.flaps(50, lasting, {}, Flap(period, duty, None, jitter), Rng("x")))
    for one, later in pairwise(windows):
        assert one.end_ns < later.start_ns
    assert all(50 <= one.start_ns < one.end_ns <= 50 + lasting for one in windows)
