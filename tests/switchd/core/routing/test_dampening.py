"""Penalties: how they add up and fade, when a route is left out, and for how long at most."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.prefix import Prefix
from mrcfabric.units import NEVER, NS_PER_S
from switchd.core.routing.dampening import CHANGE, WITHDRAWAL, Dampening
from switchd.core.settings_bgp import BgpKnobs

P = Prefix(0, 0)
MIN = 60 * NS_PER_S


def test_b3_the_third_withdrawal_in_a_row_counts_and_the_time_is_a_logarithm() -> None:
    damping = Dampening(BgpKnobs())
    assert [damping.flap(at_ns, 4, P, WITHDRAWAL) for at_ns in (0, 1, 2)] == [False, False, True]
    assert damping.penalty(2, 4, P) == pytest.approx(3_000)
    assert damping.next_ns == pytest.approx(15 * log2(3_000 / 750) * MIN, rel=1e-6)
    assert damping.next_ns == pytest.approx(30 * MIN, rel=1e-6)
    assert not damping.reuse(damping.next_ns - 1)
    assert damping.reuse(damping.next_ns) == [(4, P)]
    assert damping.next_ns == NEVER


@pytest.mark.parametrize("flaps", [3, 5, 9, 40])
def test_from_a_penalty_p_it_takes_15_log2_of_p_over_750_minutes(flaps: int) -> None:
    damping = Dampening(BgpKnobs())
    for at_ns in range(flaps):
        damping.flap(at_ns, 0, P, WITHDRAWAL)
    penalty = min(1_000 * flaps, 12_000)
    assert damping.next_ns == pytest.approx(15 * log2(penalty / 750) * MIN, rel=1e-6)
    assert damping.next_ns <= 60 * MIN + flaps


def test_after_a_half_life_half_of_it_is_left() -> None:
    damping = Dampening(BgpKnobs())
    damping.flap(0, 0, P, WITHDRAWAL)
    assert [damping.penalty(minutes * MIN, 0, P) for minutes in (15, 30, 150)] == [500, 250, 1_000 / 1_024]
    assert damping.penalty(0, 1, P) == 0


def test_flaps_that_are_far_apart_never_count() -> None:
    damping = Dampening(BgpKnobs())
    assert not any(damping.flap(number * 15 * MIN, 0, P, WITHDRAWAL) for number in range(200))


def test_changes_count_half() -> None:
    damping = Dampening(BgpKnobs())
    damping = Dampening(BgpKnobs(bgp_dampening_suppress=1_999))
    assert [damping.flap(0, 0, P, CHANGE) for _ in range(4)] == [False, False, False, True]


@given(st.lists(st.tuples(st.integers(0, 20 * MIN), st.booleans()), max_size=60), st.integers(1, 60))
def test_no_route_is_left_out_for_longer_than_is_set(flaps: list[tuple[int, bool]], most: int) -> None:
    damping = Dampening(BgpKnobs(bgp_dampening_max_suppress_ns=most * MIN, bgp_dampening_half_life_ns=15 * MIN))
    now = 0
    for later_ns, withdrawn in flaps:
        now += later_ns
        damping.reuse(now)
        damping.flap(now, 0, P, WITHDRAWAL if withdrawn else CHANGE)
        assert damping.penalty(now, 0, P) <= damping.ceiling
        assert damping.damped.get((0, P), now) <= now + most * MIN + 1


def test_faded_penalties_are_forgotten() -> None:
    damping = Dampening(BgpKnobs())
    for port in range(50):
        damping.flap(0, port, P, WITHDRAWAL)
    damping.reuse(300 * MIN)
    assert not damping._penalties
