"""Rates, shares and fairness."""

import pytest

from mrcfabric.topology import Topology
from studies.outcome import jain, median, payload_bps, rate_bps


def test_jain_is_one_for_equal_shares_and_one_nth_for_one_taker() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([]) == 0
    assert jain([0.0, 0.0]) == 0


def test_median_of_odd_and_even_counts() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5


def test_payload_is_what_headers_leave() -> None:
    topology = Topology.demo()
    assert payload_bps(topology) == 8 * payload_bps(topology, 1)
    assert 0.95 < payload_bps(topology, 1) / topology.rate_bps < 0.97


def test_what_never_ended_has_no_rate() -> None:
    assert rate_bps(1000, None) == 0
    assert rate_bps(1000, 8_000) == 1e9
