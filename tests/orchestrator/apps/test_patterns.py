"""Patterns are permutations, round by round."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.apps.patterns import PATTERNS, flows_of, pattern_of, peers_of

DEMO = Topology.demo()


def test_alltoall_reaches_everybody_once_in_n_minus_1_rounds() -> None:
    met = {nic: set() for nic in range(8)}  # type: dict[int, set[int]]
    for turn in range(7):
        flows = flows_of("alltoall", DEMO, turn, (0, 7))
        assert sorted(flows) == sorted(flows.values()) == list(range(8))
        for source, target in flows.items():
            assert source != target
            met[source].add(target)
    assert all(met[nic] == set(range(8)) - {nic} for nic in met)
    assert flows_of("alltoall", DEMO, 7, (0, 7)) == flows_of("alltoall", DEMO, 0, (0, 7))


def test_ring_and_pair() -> None:
    ring = flows_of("ring", DEMO, 3, (0, 7))
    place, seen = 0, []
    for _ in range(8):
        seen.append(place)
        place = ring[place]
    assert sorted(seen) == list(range(8))
    assert flows_of("pair", DEMO, 0, (1, 5)) == {1: 5}
    assert flows_of("pair", DEMO, 0, (1, 5), both_ways=True) == {1: 5, 5: 1}


def test_peers_are_mutual_and_only_those_who_take_part() -> None:
    assert peers_of([{1: 5}]) == {1: (5,), 5: (1,)}
    peers = peers_of([flows_of("alltoall", DEMO, turn, (0, 7)) for turn in range(2)])
    for nic, theirs in peers.items():
        assert all(nic in peers[peer] for peer in theirs)


def test_names_of_patterns() -> None:
    assert [pattern_of(name) for name in PATTERNS] == list(PATTERNS)
    with pytest.raises(ConfigError, match="one of pair, ring, alltoall"):
        pattern_of("star")
