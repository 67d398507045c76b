"""Routing cores as they come from a topology: numbers, neighbours, prefixes, and the table of a warm start."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_address
from mrcfabric.topology import Topology
from switchd.compose import switch_config
from switchd.compose_routing import asn_of, rack_prefixes, router_id_of
from switchd.core.forwarding.learned import LearnedForwarding
from switchd.core.routing.config import RoutingConfig
from switchd.core.routing.router import Router

BGP = {"forwarding": "ecmp", "routing": "bgp"}


def topology(**switch: Any) -> Topology:
    return Topology(
        planes=2, t0_per_plane=3, t1_per_plane=2, nics_per_t0=5, evs_per_qp=8, reserve_evs_per_qp=0,
        switch={**BGP, **switch},
    )  # fmt: skip


def routing(fabric: Topology, name: str) -> RoutingConfig:
    found = switch_config(fabric, name).routing
    assert found is not None
    return found


def test_every_t0_has_an_as_of_its_own_and_the_t1s_of_a_plane_one_together() -> None:
    fabric = topology()
    asns = {name: asn_of(fabric, name) for name in fabric.switch_names()}
    # RFC 6996
    assert all(4_200_000_000 <= asn <= 4_294_967_294 for asn in asns.values())
    bottom = [asn for name, asn in asns.items() if "-t0-" in name]
    assert len(set(bottom)) == len(bottom) == 6
    for plane in (0, 1):
        top = {asns[f"p{plane}-t1-{number}"] for number in range(2)}
        assert len(top) == 1
        assert not top & set(bottom)
    assert len({router_id_of(fabric, name) for name in asns}) == len(asns)


def test_the_two_ends_of_a_link_know_each_other_and_one_of_them_dials() -> None:
    fabric = topology()
    for name in fabric.switch_names():
        own = routing(fabric, name)
        for neighbor in own.neighbors:
            other = routing(fabric, neighbor.name)
            back = next(one for one in other.neighbors if one.name == name)
            assert (neighbor.address, neighbor.own_address) == (back.own_address, back.address)
            assert (neighbor.asn, neighbor.identifier) == (other.asn, other.router_id)
            assert neighbor.dials != back.dials
        assert len(own.neighbors) == (2 if "-t0-" in name else 3)


@pytest.mark.parametrize("below", [1, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("each", [False, True])
def test_prefixes_cover_the_nics_of_a_rack_and_no_others(below: int, each: bool) -> None:
    fabric = replace(topology(), nics_per_t0=below)
    for rack in range(3):
        found = rack_prefixes(fabric, rack, each)
        addresses = [int.from_bytes(nic_address(nic), "big") for nic in range(fabric.nics)]
        covered = [nic for nic, one in enumerate(addresses) if any(prefix.covers(one) for prefix in found)]
        assert covered == list(range(rack * below, (rack + 1) * below))
        assert len(found) == below if each else len(found) <= 2 * below.bit_length()


@pytest.mark.parametrize("name", ["p0-t0-1", "p1-t1-1"])
@pytest.mark.parametrize("paths", [1, 64])
def test_a_warm_start_knows_what_a_fabric_without_faults_has(name: str, paths: int) -> None:
    fabric = topology(bgp_maximum_paths=paths)
    config = switch_config(fabric, name)
    assert config.ecmp is not None
    ways = LearnedForwarding(config.ecmp)
    Router(routing(fabric, name), ways)
    for nic in range(fabric.nics):
        rack = nic // 5
        if name == "p0-t0-1":
            wanted: tuple[int, ...] = () if rack == 1 else (5, 6)[:paths]
        else:
            wanted = (rack,)
        assert ways.members(int.from_bytes(nic_address(nic), "big")) == wanted
    later = LearnedForwarding(config.ecmp)
    Router(routing(fabric, name), later, 5)
    assert not later.table, "whoever comes back begins cold"
    assert not routing(topology(bgp_start="cold"), name).warm


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("bgp_hold_ns", 2_000_000_000),
        ("bgp_hold_ns", 9_500_000_000),
        ("bgp_dampening_suppress", 750),
        ("bfd_transmit_interval_ns", 9_999_999),
        ("bfd_detect_multiplier", 256),
        ("bgp_start", "hot"),
        ("bgp_keepalive_ns", 0),
    ],
)
def test_settings_out_of_bounds_are_named(setting: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"switch\.{setting}\b"):
        switch_config(topology(**{setting: value}), "p0-t0-0")


def test_without_bgp_nothing_of_it_is_there() -> None:
    static = replace(topology(), switch={"forwarding": "ecmp"})
    assert switch_config(static, "p0-t0-0").routing is None
    assert switch_config(replace(static, switch={}), "p0-t0-0").routing is None
