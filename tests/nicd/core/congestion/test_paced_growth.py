"""A window that grows step by step: how fast, how far, and when it stops."""

import pytest

from nicd.core.congestion.paced_growth import STEPS, PacedGrowth
from nicd.core.congestion.policies import window_towards
from nicd.core.congestion.window import CongestionWindow, WindowSetup
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from nicd.core.timers import Timers

ROUND = 100_000
CWND = 8_192
RATE = 100 * 10**9
"""A product of 1.25 MB."""


class Bench:
    def __init__(self) -> None:
        self.timers = Timers()
        settings = NicSettings(base_rtt_ns=ROUND, cwnd_bytes=CWND)
        self.window: CongestionWindow = window_towards(WindowSetup(settings, RATE, NicStats()))
        self.told: list[int] = []
        self.growth = PacedGrowth(self.window, self.timers, self.told.append)

    def until(self, end: int) -> int:
        """How much larger the window is by then."""
        while self.timers.next_ns() <= end:
            self.timers.fire(self.timers.next_ns())
        return self.window.cwnd_bytes - CWND


def test_a_window_that_no_more_than_doubles_grows_within_a_round_trip() -> None:
    bench = Bench()
    bench.growth.begin(0, CWND, ROUND, 0)
    assert bench.until(ROUND // 2) == pytest.approx(CWND // 2, rel=0.1)
    assert bench.until(ROUND + STEPS) == CWND
    assert len(bench.told) == pytest.approx(STEPS, abs=1)
    assert bench.until(10 * ROUND) == CWND


@pytest.mark.parametrize(("others_bps", "share"), [(0, 0.5), (RATE // 4, 0.5), (RATE * 3 // 4, 0.75), (2 * RATE, 1)])
def test_a_larger_one_first_grows_to_half_or_to_what_others_have(others_bps: int, share: float) -> None:
    product = RATE * ROUND // (8 * 10**9)
    bench = Bench()
    bench.growth.begin(0, product - CWND, ROUND, others_bps)
    first = bench.until(ROUND + 2 * STEPS)
    assert (first + CWND) / product == pytest.approx(share, rel=0.01)
    assert bench.until(2 * ROUND - 2 * STEPS) == first, "until acknowledgements have come for that"
    assert bench.until(4 * ROUND) == product - CWND


@pytest.mark.parametrize(("busy_ns", "share"), [(-1, 1), (1, 0.5)])
def test_it_does_not_grow_on_after_a_mark(busy_ns: int, share: float) -> None:
    bench = Bench()
    bench.growth.begin(1, 1_000_000, ROUND, 0)
    bench.growth.busy_ns = busy_ns
    assert (bench.until(5 * ROUND) + CWND) / (1_000_000 + CWND) == pytest.approx(share, rel=0.01)


def test_a_later_growth_takes_the_place_of_an_earlier_one() -> None:
    bench = Bench()
    bench.growth.begin(0, 1_000_000, ROUND, 0)
    grown = bench.until(ROUND // 2)
    bench.growth.begin(ROUND // 2, 64, ROUND, 0)
    assert bench.until(5 * ROUND) == grown + 64
