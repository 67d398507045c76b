"""The formula: its limits, what it does with each figure, and a Monte Carlo of the same job beside it."""

from dataclasses import replace
from math import inf, log

import pytest

from mrcfabric.rng import Rng
from studies.scale.model import HOUR, Cost, Terms, largest, useful, with_rate

NOTHING = Cost(0, 0, False)
TERMS = Terms(1e-3)


def test_without_failures_only_checkpoints_cost() -> None:
    assert useful(1, NOTHING, NOTHING, 1, TERMS) == 1800 / 1830


def test_a_stall_costs_its_length() -> None:
    stall = Cost(1, 36.0, False)
    # One failure an hour: one per cent more time.
    assert useful(1000, stall, NOTHING, 1, replace(TERMS, checkpoint_s=0)) == pytest.approx(1 / 1.01)


def test_a_rare_fatal_failure_costs_restart_and_half_an_interval() -> None:
    """Young's first order: D + s + t/2 + (T + d)/2 per failure."""
    terms = replace(TERMS, checkpoint_s=0)
    share = useful(10, Cost(1, 5.0, True), NOTHING, 1, terms)
    per_failure = 600 + 5 + 2.5 + 900
    assert 1 / share - 1 == pytest.approx(0.01 * per_failure / HOUR, rel=0.02)


def test_a_dark_port_costs_its_share_at_worst() -> None:
    often = with_rate(TERMS, 1e6)
    assert useful(1000, NOTHING, Cost(8, 0, False), 8, replace(often, checkpoint_s=0)) == pytest.approx(7 / 8)


def test_more_gpus_or_failures_are_never_better() -> None:
    fatal = Cost(2, 30, True)
    shares = [useful(gpus, fatal, NOTHING, 1, TERMS) for gpus in (1, 10, 100, 1000, 10_000, 1_000_000)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == 0


def test_the_crossing_is_where_the_share_falls_below() -> None:
    fatal = Cost(2, 30, True)
    gpus = int(largest(0.9, fatal, NOTHING, 1, TERMS))
    assert useful(gpus, fatal, NOTHING, 1, TERMS) >= 0.9 > useful(gpus + 1, fatal, NOTHING, 1, TERMS)
    assert largest(0.9, NOTHING, NOTHING, 1, TERMS) == inf
    assert largest(0.999, NOTHING, NOTHING, 1, TERMS) == 0


@pytest.mark.parametrize("per_interval", [0.1, 0.7, 2.0])
def test_it_is_the_mean_of_jobs_that_fail_at_random(per_interval: float) -> None:
    """A job that goes through its intervals with Poisson failures, each throwing it back to the last checkpoint."""
    terms = replace(TERMS, step_s=0)
    rate = per_interval / 1830
    gpus = 1
    terms = replace(terms, rate_per_hour=rate * HOUR)
    rng = Rng("scale", "monte carlo", str(per_interval))
    intervals, spent_s = 3_000, 0.0
    for _ in range(intervals):
        while (until_s := -log((rng.below(1 << 40) + 1) / (1 << 40)) / rate) < 1830:
            spent_s += until_s + 600 + 20
        spent_s += 1830
    share = useful(gpus, Cost(1, 20, True), NOTHING, 1, terms)
    assert share == pytest.approx(intervals * 1800 / spent_s, rel=0.04)
