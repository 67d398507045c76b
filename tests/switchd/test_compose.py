"""A topology's figures as the configuration of a switch."""

import dataclasses
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from switchd.compose import switch_config, switch_settings
from switchd.core.forwarding.ecmp import EcmpConfig, EcmpForwarding
from tests.support.roce_frames import roce

DEMO = Topology.demo()


def test_a_t0_marks_upwards_and_names_the_last_hop() -> None:
    config = switch_config(DEMO, "p3-t0-1")
    assert (config.name, config.usid, config.block) == ("p3-t0-1", 0x5801, 0xFCBB_BB00)
    assert config.fib == DEMO.fib("p3-t0-1")
    assert config.towards == ("nic",) * 4 + ("t1",) * 4
    assert [port.ecn for port in config.ports] == [False] * 4 + [True] * 4
    assert [port.trim_dscp for port in config.ports] == [config.dscp.trimmed_lasthop] * 4 + [config.dscp.trimmed] * 4
    assert config.ports[0].data_bytes_max == int(1.5 * DEMO.plane_bdp_bytes)
    assert config.ports[4].ecn_min_bytes == int(0.2 * DEMO.plane_bdp_bytes)


def test_a_t1_marks_everywhere() -> None:
    config = switch_config(DEMO, "p0-t1-3")
    assert config.towards == ("t0", "t0")
    assert all(port.ecn for port in config.ports)


def test_ports_have_their_own_usids_when_asked_for() -> None:
    assert switch_config(DEMO, "p3-t0-1").adjacency == {}
    adjacency = switch_config(dataclasses.replace(DEMO, switch={"adjacency": True}), "p3-t0-1").adjacency
    assert adjacency == {port + 1: port for port in range(8)}


@pytest.mark.spec("MRC 1.0", "1.8")
def test_a_port_can_differ_from_the_others_of_its_switch() -> None:
    dscp = switch_config(DEMO, "p3-t0-1").dscp
    special = {
        "p3-t0-1.0.trim": False,
        "p3-t0-1.0.ecn": True,
        "p3-t0-1.5.trim_dscp": dscp.trimmed_lasthop,
        "ecn": False,
    }
    topology = dataclasses.replace(DEMO, switch=special)
    assert switch_settings(topology).ecn is False
    ports = switch_config(topology, "p3-t0-1").ports
    assert [port.trim for port in ports] == [False] + [True] * 7
    assert [port.ecn for port in ports] == [True] + [False] * 7
    assert [port.trim_dscp == dscp.trimmed_lasthop for port in ports] == [True] * 4 + [False, True, False, False]
    assert all(port.trim for port in switch_config(topology, "p3-t0-0").ports)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("p3-t0-1.8.trim", False, "its ports are 0 to 7"),
        ("p3-t0-1.x.trim", False, "as p0-t0-1.3.trim"),
        ("p3-t0-1.3", False, "as p0-t0-1.3.trim"),
        ("p9-t0-1.3.trim", False, "p9-t0-1"),
        ("h000.3.trim", False, "is a NIC"),
        ("p3-t0-1.3.trin", False, "nearest is trim"),
        ("p3-t0-1.3.colour", False, "nearest is trim, ecn, trim_dscp"),
        ("p3-t0-1.3.trim", 0, "true or false"),
        ("p3-t0-1.3.trim_dscp", True, "a whole number"),
        ("p3-t0-1.3.trim_dscp", 46, "12 or 16"),
    ],
)
def test_a_bad_setting_of_one_port_names_its_key(key: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        switch_settings(dataclasses.replace(DEMO, switch={key: value}))
    assert refused.value.where == f"switch.{key}"
    assert words in str(refused.value)


def ecmp(topology: Topology, name: str, **switch: Any) -> EcmpConfig:
    found = switch_config(dataclasses.replace(topology, switch={"forwarding": "ecmp"} | switch), name)
    assert found.fib == found.adjacency == {}
    assert found.ecmp is not None
    return found.ecmp


@pytest.mark.parametrize("topology", [DEMO, Topology(planes=2, t0_per_plane=5, t1_per_plane=3, nics_per_t0=7)])
def test_a_table_by_addresses_leads_to_every_nic(topology: Topology) -> None:
    """Along the table every NIC is reached from every switch, over the cables of the topology."""
    for name in topology.switch_names():
        for nic, wanted in enumerate(topology.nic_names()):
            node, hops = name, 0
            while topology.parse_node(node).tier != "nic":
                config = ecmp(topology, node)
                routed = EcmpForwarding(config).route(1, 0, roce(0, nic, 0xC000 + nic, size=60))
                assert not isinstance(routed, str)
                node, hops = topology.ports(node)[routed[0]].peer, hops + 1
            assert node == wanted
            assert hops <= 3


def test_seeds_of_hashes_follow_their_setting() -> None:
    names = list(DEMO.switch_names())
    assert len({ecmp(DEMO, name).seed for name in names}) == len(names)
    assert len({ecmp(DEMO, name, ecmp_seed="common").seed for name in names}) == 1
    other = dataclasses.replace(DEMO, seed="other")
    assert ecmp(other, names[0]).seed != ecmp(DEMO, names[0]).seed


def test_settings_of_the_hash_arrive() -> None:
    assert ecmp(DEMO, "p0-t0-0").up == (4, 5, 6, 7)
    assert (ecmp(DEMO, "p0-t0-0").crc, ecmp(DEMO, "p0-t0-0", ecmp_hash="crc").crc) == (False, True)
    assert ecmp(DEMO, "p0-t0-0", ecmp_resilient=True).resilient
    assert ecmp(DEMO, "p0-t0-0", ecmp_failover_ns=7).failover_ns == -1
    assert ecmp(DEMO, "p0-t0-0", ecmp_failover_ns=7, ecmp_failover=True).failover_ns == 7


def test_figures_of_the_topology_arrive() -> None:
    topology = Topology(rate_bps=25 * 10**9, link_delay_ns=500, seed="s", switch={"trim": False, "ecn_min": 0})
    port = switch_config(topology, "p0-t1-0").ports[0]
    assert (port.rate_bps, port.delay_ns, port.seed) == (25 * 10**9, 500, "s")
    assert (port.trim, port.ecn_min_bytes) == (False, 0)


@pytest.mark.parametrize("switch", [{"ecn_mim": 0.1}, {"ecn_min": "low"}, {"ecn_min": 0.9}, {"trim_bytes": 8}])
def test_bad_settings_name_the_key(switch: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        switch_settings(dataclasses.replace(DEMO, switch=switch))
    assert refused.value.where == f"switch.{next(iter(switch))}"


@pytest.mark.parametrize("name", ["h000", "p8-t0-0", "nonsense"])
def test_only_switches(name: str) -> None:
    with pytest.raises(ConfigError):
        switch_config(DEMO, name)
