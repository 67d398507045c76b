"""The likeliest shares of links, checked against counting, against steps to the side, and for what must not be."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.mapper.link_likelihood import Likelihood, Trial

TOLERATED = 1e-5
NONE: dict[int, float] = {}


def of(trials: list[Trial[str]], *groups: tuple[str, ...]) -> Likelihood[str]:
    return Likelihood(trials, groups, TOLERATED)


def test_one_link_loses_what_was_counted() -> None:
    likelihood = of([Trial(("a",), 200, 30)])
    fit = likelihood.fit([likelihood.number["a"]], NONE)
    assert likelihood.share(fit.rates[0]) == pytest.approx(0.15, rel=1e-3)
    healthy = 30 * math.log(TOLERATED) + 170 * math.log1p(-TOLERATED)
    assert fit.value == pytest.approx(30 * math.log(0.15) + 170 * math.log(0.85) - healthy, abs=1e-3)


def test_two_links_share_the_blame_as_a_third_trial_tells() -> None:
    likelihood = of([Trial(("a",), 1000, 100), Trial(("a", "b"), 1000, 280), Trial(("b",), 1000, 200)])
    fit = likelihood.fit([0, 1], NONE)
    assert [likelihood.share(fit.rates[at]) for at in (0, 1)] == pytest.approx([0.1, 0.2], rel=1e-2)


def test_a_probe_that_all_lose_does_not_fit_beyond_all_bounds() -> None:
    likelihood = of([Trial(("a",), 50, 50)])
    assert likelihood.share(likelihood.fit([0], NONE).rates[0]) == pytest.approx(1.0)


def test_a_group_loses_one_share_on_all_its_links() -> None:
    likelihood = of([Trial((nic,), 100, lost) for nic, lost in (("a", 1), ("b", 3), ("c", 2))], ("a", "b", "c", "z"))
    (group,) = likelihood.groups
    assert likelihood.groups[group] == {0, 1, 2}, "z has been tried by nobody"
    assert likelihood.share(likelihood.fit([group], NONE).rates[group]) == pytest.approx(0.02, rel=1e-2)


def test_a_healthy_link_stays_healthy_and_one_without_losses_is_left_out() -> None:
    likelihood = of([Trial(("a",), 1_000_000, 3), Trial(("b",), 10, 0), Trial(("c",), 0, 0)])
    fit = likelihood.fit([0, 1], NONE)
    assert fit.rates == {0: likelihood.healthy}
    assert fit.value == 0
    assert likelihood.gain_alone(0, fit) == 0
    assert likelihood.links == ["a", "b"], "a trial without probes says nothing"


LOSSES = st.lists(st.integers(0, 20), min_size=9, max_size=9)


def below(losses: list[int]) -> Likelihood[str]:
    nics, t1s = ("n0", "n1", "n2"), (None, "t0", "t1")
    places = [(nic,) if t1 is None else (nic, t1) for nic in nics for t1 in t1s]
    return of([Trial(links, 40, lost) for links, lost in zip(places, losses, strict=True)], nics, ("t0", "t1"))


@settings(max_examples=60, deadline=None)
@given(LOSSES, st.sets(st.integers(0, 6)))
def test_no_step_to_the_side_is_likelier(losses: list[int], causes: set[int]) -> None:
    likelihood = below(losses)
    fit = likelihood.fit(sorted(causes), NONE)
    for cause in fit.rates:
        for factor in (0.9, 1.1):
            fixed = {**fit.rates, cause: max(likelihood.floor(cause), fit.rates[cause] * factor)}
            assert likelihood.value(fixed) <= fit.value + 0.05


@settings(max_examples=60, deadline=None)
@given(LOSSES, st.integers(0, 6), st.sets(st.integers(0, 6)))
def test_one_more_cause_alone_gains_no_more_than_a_new_fit(losses: list[int], cause: int, causes: set[int]) -> None:
    likelihood = below(losses)
    if cause not in likelihood.crossing:
        return
    fit = likelihood.fit(sorted(causes - {cause}), NONE)
    joint = likelihood.fit([*sorted(causes - {cause}), cause], fit.rates)
    assert -1e-9 <= likelihood.gain_alone(cause, fit) <= joint.value - fit.value + 1e-3
