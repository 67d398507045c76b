"""EV <-> path: the container of every EV leads to the right NIC, and draws are equal, balanced and distinct."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.paths import EV_MAX, Destination, PathTable, ev_of
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.wire import usid

DEMO = Topology.demo()
LARGEST = Topology(name="paper", t0_per_plane=512, t1_per_plane=256, nics_per_t0=256)


def walk(topology: Topology, nic: int, destination: Destination, ev: int) -> list[str]:
    """The nodes an EV passes, by the ports and static tables alone."""
    here = topology.ports(f"h{nic:03d}")[destination.path(ev).port].peer
    container = destination.path(ev).outer
    passed = [here]
    while not here.startswith("h"):
        assert usid.block(container) == topology.usid_block
        assert usid.active(container) == topology.own_usid(here)
        container = usid.shift(container)
        here = topology.ports(here)[topology.fib(here)[usid.active(container)]].peer
        passed.append(here)
    assert usid.usids(usid.shift(container)) == ()
    return passed


def test_one_container_by_hand() -> None:
    # h000 to h005 (T0 1, down-link 1), plane 3, T1 2: T0 01|011|0, T1 10|011|2, T0 01|011|1, destination 11|011|1.
    destination = PathTable(DEMO, 0).towards(5)
    ev = ev_of(plane=3, uplink=2, draw=9)
    assert destination.path(ev).outer.hex() == "fcbbbb00" + "5800" + "9802" + "5801" + "d801" + "00000000"
    assert destination.path(ev)[:4] == (3, 3, 3, 2)
    # h000 to h001, both on T0 0: T0 01|011|0, destination 11|011|1.
    assert PathTable(DEMO, 0).towards(1).path(ev).outer.hex() == "fcbbbb00" + "5800" + "d801" + "00" * 8


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, EV_MAX))
def test_every_ev_leads_to_its_nic(nic: int, peer: int, ev: int) -> None:
    destination = PathTable(DEMO, nic).towards(peer)
    passed = walk(DEMO, nic, destination, ev)
    assert passed[-1] == f"h{peer:03d}"
    assert len(passed) == (2 if destination.same_t0 else 4)
    if not destination.same_t0:
        assert passed[1] == f"p{destination.path(ev).plane}-t1-{destination.path(ev).number}"
    assert destination.address == DEMO.nic_address(peer)


@given(st.integers(0, 131_071), st.integers(0, 131_071), st.integers(0, EV_MAX))
@settings(max_examples=10, deadline=None)
def test_every_ev_leads_to_its_nic_in_the_largest_fabric(nic: int, peer: int, ev: int) -> None:
    assert walk(LARGEST, nic, PathTable(LARGEST, nic).towards(peer), ev)[-1] == f"h{peer:03d}"


@pytest.mark.parametrize("topology", [DEMO, LARGEST, Topology(t1_per_plane=3)], ids=["demo", "paper", "uneven"])
@pytest.mark.parametrize("peer", [1, -1], ids=["same-t0", "far"])
@pytest.mark.parametrize("per_plane", [(16, 4), (2, 0), (32, 0)])
@pytest.mark.spec("MRC 1.0", "6.2")
def test_draws(topology: Topology, peer: int, per_plane: tuple[int, int]) -> None:
    destination = PathTable(topology, 0).towards(peer % topology.nics)
    active, reserve = destination.draw_evs(Rng("draws", peer), *per_plane)
    assert len({*active, *reserve}) == len(active) + len(reserve)
    for evs, count in ((active, per_plane[0]), (reserve, per_plane[1]), (active + reserve, sum(per_plane))):
        assert len(evs) == 8 * count
        paths = Counter(destination.path(ev)[2:4] for ev in evs)
        for plane in range(8):
            uses = [paths[plane, path] for path in range(destination.paths_per_plane)]
            assert sum(uses) == count
            assert max(uses) - min(uses) <= 1


def test_draws_differ_by_seed_and_repeat_with_it() -> None:
    destination = PathTable(DEMO, 0).towards(5)
    first = destination.draw_evs(Rng("a"), 16, 4)
    assert destination.draw_evs(Rng("a"), 16, 4) == first
    assert destination.draw_evs(Rng("b"), 16, 4) != first


def test_which_t1_is_left_out_is_random() -> None:
    destination = PathTable(DEMO, 0).towards(5)
    seen = {destination.path(destination.draw_evs(Rng(seed), 1, 0)[0][0]).number for seed in range(64)}
    assert seen == {0, 1, 2, 3}


def test_the_slower_end_of_each_plane_limits_the_rate() -> None:
    rates = {"h001~p0-t0-0": 25_000_000_000, "h000~p1-t0-0": 50_000_000_000, "p0-t0-0~p0-t1-0": 1_000_000_000}
    topology = Topology(planes=2, evs_per_qp=16, reserve_evs_per_qp=8, link_rates_bps=rates)
    assert PathTable(topology, 0).towards(1).rate_bps == 75_000_000_000
    assert PathTable(topology, 2).towards(3).rate_bps == 200_000_000_000
