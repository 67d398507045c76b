"""DCQCN's reaction point: the cut, the way back in steps, alpha, the pace; and flows that share a queue."""

from itertools import pairwise
from typing import Any

import pytest

from mrcfabric.units import NS_PER_S
from nicd.core.rc.dcqcn import ALPHA_ONE, Pace, ReactionPoint
from nicd.core.rc.dcqcn_profile import NO_BYTES, PROFILES
from nicd.core.rc.rc_stats import RcStats
from nicd.core.timers import Timers
from tests.nicd.core.rc.funnel import Funnel, jain

LINE = 40_000_000_000
FIGURES = PROFILES["40g"]


class Point:
    """A reaction point with a clock of its own."""

    def __init__(self, line_bps: int = LINE, profile: str = "40g", **figures: Any) -> None:
        self.figures = PROFILES[profile]._replace(**figures)
        self.timers = Timers()
        self.rc = RcStats()
        self.woken: list[int] = []
        self.now = 0
        self.point = ReactionPoint(line_bps, self.figures, self.timers, self.rc, lambda: self.woken.append(self.now))

    def run(self, until: int) -> None:
        while (at := self.timers.next_ns()) <= until:
            self.now = at
            self.timers.fire(at)
        self.now = until


@pytest.mark.parametrize("line_bps", [LINE, 100_000_000_000, 25_000_000_000, 1_000_000_000])
@pytest.mark.parametrize("time_ns", [55_000, 60_000, 300_000])
def test_one_notification_halves_the_rate_and_steps_of_t_bring_it_back(line_bps: int, time_ns: int) -> None:
    lone = Point(line_bps, time_ns=time_ns, byte_reset=NO_BYTES)
    assert lone.point.on_cnp(1000)
    shares = [lone.point.rate_bps / line_bps]
    for step in range(1, FIGURES.threshold + 1):
        lone.run(1000 + step * time_ns - 1)
        assert lone.point.rate_bps / line_bps == shares[-1]
        lone.run(1000 + step * time_ns)
        shares.append(lone.point.rate_bps / line_bps)
    assert shares == pytest.approx([0.5, 0.75, 0.875, 0.9375, 0.96875, 0.984375], rel=1e-9)
    lone.run(NS_PER_S)
    assert lone.point.rate_bps == line_bps
    assert not lone.point.slowed
    assert lone.timers.next_ns() > NS_PER_S, "an idle QP keeps nobody awake"


@pytest.mark.parametrize("shift", [4, 6, 8])
@pytest.mark.parametrize("alpha_ns", [1_000, 55_000])
def test_alpha_decays_by_one_minus_g_per_period_without_notification(shift: int, alpha_ns: int) -> None:
    lone = Point(g_shift=shift, alpha_ns=alpha_ns)
    point = lone.point
    g = 1 / (1 << shift)
    point.on_cnp(0)
    for periods in (0, 1, 2, 10, 100):
        assert point.alpha(periods * alpha_ns) / ALPHA_ONE == pytest.approx((1 - g) ** periods, rel=1e-5)
        assert point.alpha(periods * alpha_ns + alpha_ns - 1) == point.alpha(periods * alpha_ns)
    assert point.alpha(alpha_ns * 1_000_000) == 0
    # The next notification cuts by the alpha of then, and moves it up by g.
    point.on_cnp(10 * alpha_ns)
    alpha = (1 - g) ** 10
    assert point.rate_bps / LINE == pytest.approx(0.5 * (1 - alpha / 2), rel=1e-5)
    assert point.alpha(10 * alpha_ns) / ALPHA_ONE == pytest.approx((1 - g) * alpha + g, rel=1e-5)


def test_additive_then_hyper_increase() -> None:
    lone = Point(byte_reset=1_000_000, min_bps=1)
    point = lone.point
    for cut in range(6):
        point.on_cnp(cut)
    for step in range(1, 6):
        lone.run(10 + step * FIGURES.time_ns)
    target = point.target_bps
    lone.run(10 + 6 * FIGURES.time_ns)
    assert point.target_bps == target + FIGURES.ai_bps
    for _ in range(5):
        point.sent(lone.now, 1_000_000)
    assert point.target_bps == target + 6 * FIGURES.ai_bps
    point.sent(lone.now, 1_000_000)
    assert point.target_bps == target + 6 * FIGURES.ai_bps + FIGURES.hai_bps
    lone.run(lone.now + FIGURES.time_ns)
    assert point.target_bps == target + 6 * FIGURES.ai_bps + 2 * FIGURES.hai_bps
    for _ in range(2):
        point.sent(lone.now, 1_000_000)
    lone.run(lone.now + FIGURES.time_ns)
    assert lone.rc.rate_steps == 6 + 6 + 1 + 2 + 1


@pytest.mark.parametrize("threshold", [1, 2, 5])
def test_time_alone_decides_where_no_bytes_are_counted(threshold: int) -> None:
    """One step of slow growth after those of recovery, then fast ones that do not grow; bytes change nothing."""
    lone = Point(profile="100g", threshold=threshold, clamp=True)
    point, figures = lone.point, lone.figures
    for cut in range(8):
        lone.now = cut * figures.reduce_ns
        assert point.on_cnp(lone.now)
    begin, target = lone.now, point.target_bps
    grown = []
    for step in range(1, threshold + 5):
        point.sent(lone.now, 1 << 30)
        lone.run(begin + step * figures.time_ns)
        grown.append(point.target_bps - target)
    slow, fast = figures.ai_bps, figures.hai_bps
    assert grown == [0] * threshold + [slow, slow + fast, slow + 2 * fast, slow + 3 * fast]


def test_the_rate_has_a_floor_and_notifications_a_least_distance() -> None:
    lone = Point(profile="100g")
    point = lone.point
    assert point.on_cnp(0)
    assert not point.on_cnp(3_999)
    assert point.rate_bps == LINE // 2
    for number in range(1, 400):
        assert point.on_cnp(number * 4_000)
    assert point.rate_bps == PROFILES["100g"].min_bps
    assert lone.rc.rate_cuts == 400


def test_without_clamping_the_target_stays_until_an_increase() -> None:
    lone = Point(clamp=False)
    lone.point.on_cnp(0)
    lone.point.on_cnp(1)
    assert lone.point.target_bps == LINE
    lone.run(FIGURES.time_ns + 1)
    rate = lone.point.rate_bps
    lone.point.on_cnp(lone.now)
    assert lone.point.target_bps == rate


@pytest.mark.parametrize("size", [64, 1_000, 4_198])
@pytest.mark.parametrize("cuts", [1, 3, 8])
def test_packets_leave_at_the_rate(size: int, cuts: int) -> None:
    lone = Point(time_ns=NS_PER_S, byte_reset=NO_BYTES)
    for cut in range(cuts):
        lone.point.on_cnp(cut)
    begin, lone.now = 100, 100
    for _ in range(1_000):
        assert lone.point.open
        lone.point.sent(lone.now, size)
        if not lone.point.open:
            lone.run(lone.timers.next_ns())
    took = lone.now - begin
    assert took == pytest.approx(1_000 * size * 8 * NS_PER_S / lone.point.rate_bps, abs=2)
    assert lone.woken


def test_a_pause_is_not_made_up_for() -> None:
    lone = Point(time_ns=NS_PER_S)
    lone.point.on_cnp(0)
    lone.point.sent(1_000_000, 1_000)
    lone.run(lone.timers.next_ns())
    assert lone.now == 1_000_000 + 1_000 * 8 // 20


def test_without_control_nothing_is_slowed() -> None:
    pace = Pace(LINE)
    pace.sent(0, 1_000)
    assert pace.open
    assert not pace.on_cnp(0)
    assert not pace.slowed
    pace.moved(1)
    pace.stop()
    assert pace.record() == {"rate_bps": 1, "target_bps": 1, "alpha_ppm": 0}


def test_a_new_port_is_a_new_line() -> None:
    lone = Point()
    lone.point.on_cnp(0)
    lone.point.moved(LINE // 4)
    assert lone.point.rate_bps == lone.point.target_bps == LINE // 4
    assert not lone.point.slowed
    lone.point.stop()
    assert lone.timers.next_ns() > NS_PER_S


# -- flows that share a queue: DCQCN's own 40G profile of marking


def shared(senders: int, starts: list[int], messages: int, **nic: Any) -> Funnel:
    marks = {"kmin": 5_000, "kmax": 200_000, "pmax_ppm": 10_000}
    return Funnel(senders, LINE, length=1 << 20, starts=starts, messages=messages, **marks, **nic)


def test_a_late_comer_gets_its_share_and_both_climb() -> None:
    funnel = shared(2, [0, 1_000_000], 20)
    funnel.run(900_000)
    assert funnel.rates()[0] == LINE
    slopes = []
    best = 0.0
    while funnel.now < 4_000_000:
        before = [(point.rate_bps, point.record()["target_bps"]) for point in map(funnel.pace, (1, 2))]
        cuts = [funnel.nics[side].counters()["rc"]["rate_cuts"] for side in (1, 2)]
        funnel.run(funnel.now + FIGURES.time_ns)
        best = max(best, jain(funnel.rates())) if funnel.now > 1_100_000 else 0.0
        for side in (1, 2):
            rate, target = before[side - 1]
            uncut = cuts[side - 1] == funnel.nics[side].counters()["rc"]["rate_cuts"]
            # Beyond fast recovery the rate is half a step below its target, and grows as that does.
            if uncut and target - rate < FIGURES.ai_bps + 1 << 1 and rate < LINE * 3 // 4:
                slopes.append(funnel.rates()[side - 1] - rate)
    assert best > 0.99
    exact = [slope for slope in slopes if abs(slope - FIGURES.ai_bps) <= FIGURES.ai_bps // 4]
    assert len(exact) > 10
    assert len(exact) > 0.7 * len(slopes)


def check_steady(senders: int, from_ns: int, until_ns: int) -> tuple[float, float, float]:
    """(share of the queue's wire, Jain's index of what was sent, mean depth) of flows that started together."""
    messages = until_ns * LINE // 8_000_000_000 // (1 << 20) + 3
    funnel = shared(senders, [0] * senders, messages, mtu=4096)
    funnel.run(from_ns)
    before = [nic.counters()["payload_bytes"] for nic in funnel.nics[1:]]
    carried, depth, count = funnel.carried, funnel.depth_sum, funnel.depth_count
    funnel.run(until_ns)
    sent = [nic.counters()["payload_bytes"] - old for nic, old in zip(funnel.nics[1:], before, strict=True)]
    share = (funnel.carried - carried) * 8 * NS_PER_S / LINE / (until_ns - from_ns)
    return share, jain(sent), (funnel.depth_sum - depth) / (funnel.depth_count - count)


def test_two_flows_use_the_wire_and_share_it() -> None:
    share, fair, _ = check_steady(2, 2_000_000, 6_000_000)
    assert share > 0.94
    assert fair > 0.98


@pytest.mark.long
def test_steady_state_over_flows() -> None:
    rows = [check_steady(senders, 20_000_000, 120_000_000) for senders in (2, 4, 8, 16)]
    assert all(share > 0.94 for share, _, _ in rows), rows
    assert all(fair > 0.995 for _, fair, _ in rows), rows
    depths = [depth for _, _, depth in rows]
    assert all(less < more for less, more in pairwise(depths)), rows
