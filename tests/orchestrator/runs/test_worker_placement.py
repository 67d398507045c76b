"""Who sits where."""

import pytest

from mrcfabric.topology import Topology
from orchestrator.runs.worker_placement import ring_order, ring_peers


@pytest.mark.parametrize(("t0s", "nics"), [(2, 4), (3, 3), (4, 1), (2, 1)])
def test_every_edge_of_the_ring_crosses_t1s(t0s: int, nics: int) -> None:
    topology = Topology(t0_per_plane=t0s, nics_per_t0=nics)
    order = ring_order(topology)
    assert sorted(order) == list(range(topology.nics))
    for place, nic in enumerate(order):
        successor = order[(place + 1) % len(order)]
        assert nic // nics != successor // nics


def test_neighbours_are_mutual() -> None:
    assert ring_peers(0, 4) == (1, 3)
    assert ring_peers(0, 2) == (1,)
    for ranks in (2, 3, 8):
        for rank in range(ranks):
            assert all(rank in ring_peers(peer, ranks) for peer in ring_peers(rank, ranks))
