"""B3 and B5: their formulas by hand, and that a quick point of each holds and can fail."""

from math import log2

import pytest

from studies.systems.route_timers import (
    Flapping,
    Pacing,
    measure_dampening,
    measure_pacing,
    penalty,
    reuse_after_s,
    suppressing_flap,
)
from tests.studies.systems.findings import missed


def test_penalties_add_up_and_fade_by_half() -> None:
    assert penalty(1, 20, 900) == 1_000
    assert penalty(3, 900, 900) == 1_750
    assert penalty(4, 1e-9, 900) == pytest.approx(4_000)


def test_the_third_flap_suppresses_unless_the_flaps_are_far_apart() -> None:
    assert suppressing_flap(20, 900) == 3
    assert suppressing_flap(1e-6, 900) == 3
    # 1,000 (1 + 0.63 + 0.40) is just above the threshold, 1,000 (1 + 0.57 + 0.33) is not.
    assert suppressing_flap(600, 900) == 3
    assert suppressing_flap(720, 900) == 4


def test_a_route_is_used_again_when_its_penalty_has_faded_and_after_an_hour_at_the_latest() -> None:
    assert reuse_after_s(3_000, 900, 750) == 1_800
    assert reuse_after_s(2_500, 900, 750) == pytest.approx(900 * log2(2_500 / 750))
    assert reuse_after_s(12_000, 900, 750) == 3_600
    assert reuse_after_s(24_000, 900, 750) == 3_600


def test_damping_follows_the_closed_form() -> None:
    assert not missed(measure_dampening(Flapping(5, 20, 120)))


@pytest.mark.parametrize("jitter", [True, False])
def test_the_second_news_waits_for_the_interval(jitter: bool) -> None:
    assert not missed(measure_pacing(Pacing(5_000, jitter, seeds=3)))
