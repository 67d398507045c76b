"""The ways back to a NIC: where they turn round, what they cross, and who tries which in which round."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.naming import USID_TIER_DESTINATION, USID_TIER_T0, USID_TIER_T1, usid_of
from mrcfabric.paths import PathTable
from mrcfabric.topology import Topology
from mrcfabric.turns import TurnTable
from mrcfabric.wire import usid

DEMO = Topology.demo()
SHAPES = st.builds(
    Topology,
    planes=st.integers(1, 3),
    t0_per_plane=st.integers(1, 3),
    t1_per_plane=st.integers(1, 6),
    nics_per_t0=st.integers(1, 5),
    evs_per_qp=st.just(12),
    reserve_evs_per_qp=st.just(6),
)


@pytest.mark.spec("arXiv 2605.04333", "8")
def test_a_way_goes_out_and_home_by_the_same_links() -> None:
    turns = TurnTable(DEMO, 5)
    near, down = usid_of(USID_TIER_T0, 3, 1), usid_of(USID_TIER_DESTINATION, 3, 1)
    assert usid.usids(turns.outer(turns.number(3, None))) == (near, down)
    t1 = usid_of(USID_TIER_T1, 3, 2)
    assert usid.usids(turns.outer(turns.number(3, 2))) == (near, t1, near, down)


def test_ways_are_numbered_plane_by_plane() -> None:
    turns = TurnTable(DEMO, 0)
    places = [(turns.plane(way), turns.t1(way)) for way in range(turns.ways)]
    assert places == [(plane, t1) for plane in range(8) for t1 in (None, 0, 1, 2, 3)]
    assert [turns.number(*place) for place in places] == list(range(turns.ways))


def test_the_ev_of_a_way_names_its_plane_and_t1() -> None:
    turns = TurnTable(DEMO, 0)
    elsewhere = PathTable(DEMO, 0).towards(7)
    for way in range(turns.ways):
        assert elsewhere.path(turns.ev(way)).plane == turns.plane(way)
        assert elsewhere.path(turns.ev(way)).number == (turns.t1(way) or 0)


def walk(topology: Topology, nic: int, way: int) -> list[str]:
    """The nodes a packet passes, by the switches' own tables."""
    turns = TurnTable(topology, nic)
    usids = usid.usids(turns.outer(way))
    end = topology.ports(topology.node_name(nic))[turns.plane(way)]
    passed = [end.peer]
    for active, following in itertools.pairwise(usids):
        assert topology.own_usid(passed[-1]) == active
        passed.append(topology.ports(passed[-1])[topology.fib(passed[-1])[following]].peer)
    return passed


@given(SHAPES, st.data())
def test_switches_bring_every_packet_home(topology: Topology, data: st.DataObject) -> None:
    nic = data.draw(st.integers(0, topology.nics - 1))
    turns = TurnTable(topology, nic)
    for way in range(turns.ways):
        t0 = topology.ports(topology.node_name(nic))[turns.plane(way)].peer
        t1 = turns.t1(way)
        home = topology.node_name(nic)
        expected = [t0, home] if t1 is None else [t0, f"p{turns.plane(way)}-t1-{t1}", t0, home]
        assert walk(topology, nic, way) == expected


@given(SHAPES, st.integers(0, 1000), st.integers(1, 3))
def test_every_round_tries_every_link(topology: Topology, number: int, testers: int) -> None:
    tried: Counter[tuple[int, int, int | None]] = Counter()
    for nic in range(topology.nics):
        turns = TurnTable(topology, nic)
        ways = turns.of_round(number, testers)
        assert len(ways) == len(set(ways))
        for way in ways:
            t1 = turns.t1(way)
            whose = nic if t1 is None else nic // topology.nics_per_t0
            tried[turns.plane(way), whose, t1] += 1
    shared = min(testers, topology.nics_per_t0)
    assert len(tried) == topology.link_count
    assert all(count == (1 if t1 is None else shared) for (_, _, t1), count in tried.items())


@given(SHAPES, st.integers(0, 1000), st.integers(1, 3))
def test_each_nic_tries_every_way_in_its_turn(topology: Topology, first: int, testers: int) -> None:
    turns = TurnTable(topology, topology.nics - 1)
    tried = Counter(way for number in range(topology.nics_per_t0) for way in turns.of_round(first + number, testers))
    shared = min(testers, topology.nics_per_t0)
    expected = {way: topology.nics_per_t0 if turns.t1(way) is None else shared for way in range(turns.ways)}
    assert tried == expected


@given(SHAPES, st.data())
def test_loops_are_numbered_and_lead_home(topology: Topology, data: st.DataObject) -> None:
    nic = data.draw(st.integers(0, topology.nics - 1))
    turns = TurnTable(topology, nic)
    way = data.draw(st.integers(turns.ways, turns.numbers - 1))
    loop = turns.loop(way)
    assert loop is not None
    plane, t1_out, t0, t1_home = loop
    assert turns.loop_number(plane, t1_out, t0, t1_home) == way
    assert (turns.plane(way), turns.t1(way)) == (plane, t1_out)
    near = topology.ports(topology.node_name(nic))[plane].peer
    passed = [near, f"p{plane}-t1-{t1_out}", f"p{plane}-t0-{t0}", f"p{plane}-t1-{t1_home}", near]
    assert walk(topology, nic, way) == [*passed, topology.node_name(nic)]
    assert turns.loop(turns.ways - 1) is None
