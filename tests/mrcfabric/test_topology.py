"""The shape of a fabric, checked against itself on small fabrics and by spot on the largest."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.units import serialization_ns

LARGEST = Topology(name="paper", t0_per_plane=512, t1_per_plane=256, nics_per_t0=256)

small = st.builds(
    Topology,
    planes=st.sampled_from([1, 2, 4, 8]),
    t0_per_plane=st.integers(1, 4),
    t1_per_plane=st.integers(1, 5),
    nics_per_t0=st.integers(1, 4),
)


def test_demo_sizes() -> None:
    demo = Topology.demo()
    assert (demo.nics, demo.switches, demo.nodes) == (8, 48, 56)
    assert demo.link_count == 8 * (8 + 2 * 4)
    assert demo.paths_per_pair == 32


def test_largest_sizes() -> None:
    assert LARGEST.nics == 131_072
    assert LARGEST.switches == 4096 + 2048
    assert LARGEST.paths_per_pair == 2048
    assert LARGEST.node_name(LARGEST.nodes - 1) == "p7-t1-255"
    assert LARGEST.node_index("p7-t1-255") == 137_215
    assert len(LARGEST.fib("p7-t0-511")) == 512
    assert len(LARGEST.fib("p7-t1-255")) == 512


@given(small)
@settings(max_examples=30)
def test_numbers_and_names_are_one_to_one(topology: Topology) -> None:
    names = list(topology.node_names())
    assert len(set(names)) == len(names) == topology.nodes
    assert [topology.node_index(name) for name in names] == list(range(topology.nodes))
    assert names == [*topology.nic_names(), *topology.switch_names()]


@given(small)
@settings(max_examples=30)
def test_every_cable_has_two_ends_that_agree(topology: Topology) -> None:
    links = list(topology.links())
    assert len(links) == topology.link_count == len({link.name for link in links})
    ends = set()
    for link in links:
        for name, port, peer, peer_port in (
            (link.a, link.a_port, link.b, link.b_port),
            (link.b, link.b_port, link.a, link.a_port),
        ):
            end = topology.ports(name)[port]
            assert (end.port, end.peer, end.peer_port, end.link) == (port, peer, peer_port, link.name)
            assert topology.parse_node(peer).tier == end.towards
            ends.add((name, port))
        assert topology.parse_link(link.name) == link == topology.parse_link(f"{link.b}~{link.a}")
    assert len(ends) == sum(len(topology.ports(name)) for name in topology.node_names())


@given(small)
@settings(max_examples=30)
def test_usids_of_switches_are_unique_and_their_neighbours_know_them(topology: Topology) -> None:
    usids = {name: topology.own_usid(name) for name in topology.switch_names()}
    assert len(set(usids.values())) == topology.switches
    assert 0 not in usids.values()
    for name in usids:
        fib = topology.fib(name)
        assert sorted(fib.values()) == [end.port for end in topology.ports(name)]
        for end in topology.ports(name):
            if end.towards != "nic":
                assert fib[usids[end.peer]] == end.port


def test_ports_are_numbered_down_first() -> None:
    ports = Topology.demo().ports("p2-t0-1")
    assert [end.peer for end in ports] == ["h004", "h005", "h006", "h007", *(f"p2-t1-{n}" for n in range(4))]
    assert [end.towards for end in ports] == ["nic"] * 4 + ["t1"] * 4
    assert ports[0].peer_port == 2
    assert ports[0].link == "h004~p2-t0-1"
    assert [end.peer for end in Topology.demo().ports("h005")] == [f"p{plane}-t0-1" for plane in range(8)]


def test_addresses_belong_to_nics_of_this_fabric() -> None:
    demo = Topology.demo()
    assert [demo.nic_of_address(demo.nic_address(nic)) for nic in range(8)] == list(range(8))
    assert demo.nic_of_address(demo.nic_address(8)) is None


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("h42", "h007"),
        ("h3", "h003"),
        ("host5", "h005"),
        ("p3-t2-2", "p3-t1-2"),
        ("p9-t0-1", "p7-t0-1"),
        ("p0-t1-9", "p0-t1-3"),
        ("p3-t1", "p3-t0-1"),
    ],
)
def test_an_unknown_node_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=nearest):
        Topology.demo().parse_node(name)


@pytest.mark.parametrize("name", ["banana7", "x9", "pizza1-2", "7up", "house 5 of 9"])
def test_what_is_like_no_node_is_refused_without_a_nearest(name: str) -> None:
    with pytest.raises(ConfigError, match="nodes are h000"):
        Topology.demo().parse_node(name)


@pytest.mark.parametrize(
    "name", ["", "~", "nonsense", "h000", "h000~h000", "h000~h001", "h000~p0-t1-0", "h000~p0-t0-0~"]
)
def test_an_unknown_link_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        Topology.demo().parse_link(name)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("h000~p0-t1-0", "h000~p0-t0-0"),
        ("h001~p3-t0-1", r"h00\d~p\d-t0-1"),
        ("p0-t0-0~p1-t1-0", r"p\d-t0-0~p\d-t1-0"),
    ],
)
def test_an_unknown_link_between_known_nodes_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"nearest is {nearest}"):
        Topology.demo().parse_link(name)


@given(st.text(max_size=20).filter(lambda name: Topology.demo().find_node(name) is None))
def test_every_refusal_is_one_printable_line(name: str) -> None:
    demo = Topology.demo()
    for lookup in (demo.parse_node, demo.parse_link, demo.nic_index, demo.own_usid):
        with pytest.raises(ConfigError) as refused:
            lookup(name)
        assert str(refused.value).isprintable()


def test_a_nic_is_no_switch_and_the_reverse() -> None:
    demo = Topology.demo()
    for refused in (lambda: demo.own_usid("h000"), lambda: demo.fib("h000"), lambda: demo.nic_index("p0-t0-0")):
        with pytest.raises(ConfigError):
            refused()


@pytest.mark.parametrize(
    "bad",
    [
        {"planes": 0},
        {"planes": 9},
        {"planes": True},
        {"planes": "8"},
        {"t0_per_plane": 0},
        {"t1_per_plane": 2049},
        {"nics_per_t0": -1},
        {"rate_bps": 0},
        {"rate_bps": 1e11},
        {"link_delay_ns": 99},
        {"mtu_bytes": 1500},
        {"mtu_bytes": 4096.0},
        {"evs_per_qp": 100},
        {"evs_per_qp": 0},
        {"reserve_evs_per_qp": 31},
        {"dilation": 0.5},
        {"dilation": "fast"},
        {"dilation": None},
        {"dilation": float("nan")},
        {"name": "Demo"},
        {"name": ""},
        {"name": 7},
        {"seed": ""},
        {"seed": 1},
        {"nic": []},
        {"switch": None},
        {"usid_block": 1 << 32},
    ],
)
def test_impossible_values_are_refused_by_name(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        Topology(**bad)


def test_base_rtt_is_the_sum_of_its_parts() -> None:
    demo = Topology.demo()
    data = serialization_ns(4096 + 128 + 38, 100_000_000_000)
    sack = serialization_ns(140 + 38, 100_000_000_000)
    assert (data, sack) == (341, 15)
    assert demo.base_rtt_ns() == 4 * (1000 + 341) + 4 * (1000 + 15) == 9424
    assert demo.base_rtt_ns(same_t0=True) == 4712
    assert demo.plane_bdp_bytes == 117_800
    assert demo.nic_bdp_bytes == 8 * 117_800


def test_data_round_trip_and_digest() -> None:
    topology = Topology(name="x", nic={"rto_ns": 5}, dilation=1000)
    assert Topology.from_dict(topology.to_dict()) == topology
    assert topology.digest() == Topology.from_dict(topology.to_dict()).digest()
    assert topology.digest() != dataclasses.replace(topology, seed="other").digest()
    with pytest.raises(ConfigError, match="plains"):
        Topology.from_dict({"plains": 8})


def test_one_cable_may_be_slower_than_the_rest() -> None:
    topology = Topology(link_rates_bps={"p0-t0-1~p0-t1-2": 25 * 10**9})
    slow = [
        (name, end.port, end.rate_bps)
        for name in topology.node_names()
        for end in topology.ports(name)
        if end.rate_bps != topology.rate_bps
    ]
    assert slow == [("p0-t0-1", topology.nics_per_t0 + 2, 25 * 10**9), ("p0-t1-2", 1, 25 * 10**9)]
    assert topology.base_rtt_ns() == Topology().base_rtt_ns(), "nobody reckons with it"
    assert Topology.from_dict(topology.to_dict()) == topology
    assert topology.digest() != Topology().digest()
