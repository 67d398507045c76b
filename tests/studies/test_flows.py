"""Patterns of flows."""

import pytest

from studies.fabrics import four_by_100
from studies.flows import START_NS, incast, permutation, ring


def test_a_permutation_crosses_t0s_and_gives_everybody_one_sender() -> None:
    topology = four_by_100("a", t0_per_plane=3)
    flows = permutation(topology, 1 << 20)
    assert sorted(flow.source for flow in flows) == list(range(topology.nics))
    assert sorted(flow.target for flow in flows) == list(range(topology.nics))
    assert all(flow.source // 4 != flow.target // 4 for flow in flows)
    assert all(0 <= flow.start_ns - START_NS < topology.base_rtt_ns() for flow in flows)


def test_it_grows_from_the_seed() -> None:
    assert permutation(four_by_100("a"), 4096) == permutation(four_by_100("a"), 4096)
    assert permutation(four_by_100("a"), 4096) != permutation(four_by_100("b"), 4096)


def test_part_of_the_nics_and_several_qps() -> None:
    flows = permutation(four_by_100("a"), 1 << 20, messages=3, qps=4, below=2)
    assert sorted(flow.target for flow in flows) == [0, 1, 4, 5]
    assert {flow.size * flow.messages * flow.qps for flow in flows} == {3 << 20}


def test_an_incast_comes_from_other_t0s() -> None:
    flows = incast(four_by_100("a", t0_per_plane=3), 7, 4096)
    assert [flow.source for flow in flows] == [4, 5, 6, 7, 8, 9, 10]
    assert {flow.target for flow in flows} == {0}
    with pytest.raises(AssertionError):
        incast(four_by_100("a"), 5, 4096)


def test_every_step_of_a_ring_leads_to_another_t0() -> None:
    flows = ring(four_by_100("a"), 4096)
    assert [flow.source for flow in flows] == [0, 4, 1, 5, 2, 6, 3, 7]
    assert all(flow.source // 4 != flow.target // 4 for flow in flows)
    assert all(flow.after is not None and flows[flow.after].target == flow.source for flow in flows)
    assert {flow.messages for flow in flows} == {14}
