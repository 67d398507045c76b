"""The criterion keeps its false-alarm rate, and finds what it says it finds."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrcfabric.rng import PPM, Rng
from orchestrator.mapper import loss_statistics as statistics


@given(st.integers(1, 5_000), st.sampled_from([1e-5, 1e-4, 1e-3, 1e-2]), st.sampled_from([1e-3, 1e-6, 1e-9]))
@example(1, 1e-3, 1e-3)
def test_a_healthy_link_is_accused_at_most_as_often_as_allowed(
    probes: int, tolerated: float, false_alarm: float
) -> None:
    losses = statistics.losses_needed(probes, tolerated, false_alarm)
    # One lost of one is exactly as likely as is allowed: the sum may be the last bit above.
    assert statistics.chance_of_more(probes, losses, tolerated) <= false_alarm * (1 + 1e-9)


@given(st.integers(1, 400), st.floats(0.001, 0.999))
def test_chances_of_all_counts_fall_from_one_and_are_a_distribution(probes: int, share: float) -> None:
    tails = [statistics.chance_of_more(probes, lost, share) for lost in range(probes + 2)]
    assert tails[0] == 1
    assert tails[-1] == 0
    assert all(more <= less + 1e-9 for less, more in itertools.pairwise(tails))
    assert tails[probes] == pytest.approx(share**probes, rel=1e-6, abs=1e-300)
    assert sum(tails[1:]) == pytest.approx(probes * share, rel=1e-6), "the mean of the distribution"


@pytest.mark.parametrize(("loss", "probes"), [(0.05, 28), (0.01, 160), (0.001, 2200)])
def test_the_figures_of_the_documentation(loss: float, probes: int) -> None:
    rate = statistics.divergence(statistics.round_trip(loss), statistics.TOLERATED)
    assert statistics.needed() / rate == pytest.approx(probes, rel=0.1)


@pytest.mark.parametrize("loss", [0.2, 0.05, 0.01, 0.001])
def test_as_many_probes_as_asked_for_find_a_loss(loss: float) -> None:
    probes = statistics.probes_to_find(loss, 0.99)
    assert statistics.chance_found(loss, probes) >= 0.99
    rate = statistics.divergence(statistics.round_trip(loss), statistics.TOLERATED)
    assert probes <= 5 * statistics.needed() / rate


def test_drawn_losses_are_found_as_often_as_promised() -> None:
    rng = Rng("losses")
    probes = statistics.probes_to_find(0.05, 0.9)
    losses = statistics.losses_needed(probes)
    share_ppm = int(statistics.round_trip(0.05) * PPM)
    found = sum(sum(rng.chance(share_ppm) for _ in range(probes)) >= losses for _ in range(400))
    assert 0.85 <= found / 400 <= 1


def test_a_loss_that_is_tolerated_is_never_found() -> None:
    assert statistics.probes_to_find(statistics.TOLERATED / 4) == statistics.PROBES_MAX


@given(st.integers(0, 100_000))
def test_probes_that_come_home_rule_out_a_loss(probes: int) -> None:
    below = statistics.loss_below(probes)
    assert (1 - statistics.round_trip(below)) ** probes == pytest.approx(0.01 if probes else 1, rel=1e-4)
    assert statistics.loss_below(probes + 1) < below or not probes


@given(st.floats(0.001, 0.9))
def test_a_link_is_not_believed_before_its_loss_would_have_shown(share: float) -> None:
    probes = statistics.clean_needed(share)
    assert (1 - share) ** probes <= 0.01 < (1 - share) ** (probes - 1) * 1.0001


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_the_least_share_is_hardly_believable(probes: int, lost: int) -> None:
    lost = min(lost, probes)
    least = statistics.least_share(probes, lost)
    assert 0 < least < lost / probes
    assert statistics.chance_of_more(probes, lost, least) <= 0.011


def test_nothing_lost_leaves_every_share_believable() -> None:
    assert statistics.least_share(100, 0) == statistics.least_share(0, 0) == 0


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_link_that_lost_all_or_nothing_needs_one_good_probe(share: float) -> None:
    assert statistics.clean_needed(share) == 1


@given(st.floats(0, 1))
def test_one_way_and_round_trip_undo_each_other(loss: float) -> None:
    assert statistics.one_way(statistics.round_trip(loss)) == pytest.approx(loss, abs=1e-7)
