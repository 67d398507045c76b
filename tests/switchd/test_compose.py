"""A topology's figures as the configuration of a switch."""

import dataclasses
from typing import Any

import pytest

from mrcfabric.class_egress import ClassEgress
from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.node import Transmit
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from switchd.compose import switch_config, switch_settings
from switchd.core.build import build_switch
from switchd.core.forwarding.ecmp import EcmpConfig, EcmpForwarding
from switchd.core.headroom import exact_headroom
from switchd.core.settings import LosslessConfig
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
        ("p3-t0-1.3.colour", False, "there are trim, ecn, trim_dscp"),
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


def lossless(topology: Topology, name: str, **switch: Any) -> LosslessConfig:
    found = switch_config(dataclasses.replace(topology, switch={"lossless": "pfc"} | switch), name)
    assert all(isinstance(port, ClassEgressConfig) for port in found.ports)
    assert found.lossless is not None
    return found.lossless


def test_a_lossless_switch_has_eight_classes_and_a_buffer() -> None:
    found = lossless(DEMO, "p0-t0-0", pfc_classes="4,3", pfc_watchdog_ns=7)
    assert (found.buffer.lossless, found.quanta, found.watchdog_ns) == ((3, 4), 65_535, 7)
    assert found.buffer.frame_bytes_max == 4096 + DATA_PACKET_EXTRA_BYTES
    assert (found.buffer.xoff_bytes, found.buffer.alpha_shift) == (0, 3)
    assert lossless(DEMO, "p0-t0-0", pfc_threshold="static").buffer.xoff_bytes == 256 << 10
    ports = switch_config(dataclasses.replace(DEMO, switch={"lossless": "pfc"}), "p0-t0-0").ports
    plain = switch_config(DEMO, "p0-t0-0").ports
    for port, usual in zip(ports, plain, strict=True):
        assert isinstance(port, ClassEgressConfig)
        assert port.limits[3] == 12 << 20, "the buffer binds, and not the queue"
        assert (port.limits[0], port.limits[6]) == (usual.data_bytes_max, usual.control_bytes_max)
        assert (port.ecn, port.ecn_min_bytes, port.rate_bps) == (usual.ecn, usual.ecn_min_bytes, usual.rate_bps)


@pytest.mark.parametrize(
    ("switch", "strict", "weights"),
    [
        ({}, (6, 7), (1,) * 8),
        ({"class_strict": "none", "class_weights": "1,2,3,4,5,6,7,1000"}, (), (1, 2, 3, 4, 5, 6, 7, 1000)),
        ({"class_strict": 6}, (6,), (1,) * 8),
        ({"class_strict": "7, 6, 3"}, (3, 6, 7), (1,) * 8),
    ],
)
def test_classes_have_the_weights_and_the_rank_that_are_set(
    switch: dict[str, Any], strict: tuple[int, ...], weights: tuple[int, ...]
) -> None:
    found = switch_config(dataclasses.replace(DEMO, switch={"lossless": "pfc", **switch}), "p0-t0-0")
    for port in found.ports:
        assert isinstance(port, ClassEgressConfig)
        assert (port.strict, port.weights) == (strict, weights)
        assert port.limits[3] == 12 << 20
        assert port.limits[6] == (port.control_bytes_max if 6 in strict else port.data_bytes_max)


@pytest.mark.parametrize("weights", [(1, 1), (1, 3), (7, 2)])
def test_classes_share_the_wire_by_their_weights(weights: tuple[int, int]) -> None:
    written = ",".join(map(str, (1, 1, *weights, 1, 1, 1, 1)))
    switch = {"lossless": "pfc", "class_weights": written, "data": 100.0}
    port = build_switch(switch_config(dataclasses.replace(DEMO, switch=switch), "p0-t0-0")).egress[5]
    assert isinstance(port, ClassEgress)
    out: list[Transmit] = []
    for _ in range(500):
        for cls in (2, 3):
            port.offer(0, bytearray(1_000), cls, out)
    port.run(20_000, out)
    first, second = port.class_packets[2], port.class_packets[3]
    assert first + second > 200
    assert first / second == pytest.approx(weights[0] / weights[1], rel=0.1)


def test_one_port_of_a_lossless_switch_may_differ() -> None:
    special = {"lossless": "pfc", "p0-t0-0.5.ecn": False}
    ports = switch_config(dataclasses.replace(DEMO, switch=special), "p0-t0-0").ports
    assert [port.ecn for port in ports] == [False] * 4 + [True, False, True, True]


def test_exact_headroom_follows_the_link() -> None:
    """Both delays, a slower cable, latency of nodes: each port has its own."""
    topology = dataclasses.replace(
        DEMO, link_delay_ns=2_000, latency={"t0_ns": 300}, link_rates_bps={"p0-t0-0~p0-t1-1": 25 * 10**9}
    )
    frame = 4096 + DATA_PACKET_EXTRA_BYTES + 38
    found = lossless(topology, "p0-t0-0").buffer.headroom_bytes
    for end, headroom in zip(topology.ports("p0-t0-0"), found, strict=True):
        delays_ns = end.delay_ns + end.incoming_delay_ns
        assert headroom == exact_headroom(end.rate_bps, delays_ns, frame, 1)
        assert headroom == pytest.approx(delays_ns * end.rate_bps / 8e9 + 2 * frame + 84, abs=60)
    assert len(set(found)) == 2


@pytest.mark.parametrize(("given", "wanted"), [("deployed", 62_841), ("5000", 5_000), (5_000, 5_000), (0, 0)])
def test_headroom_may_be_what_drivers_reserve_or_a_number(given: Any, wanted: int) -> None:
    assert set(lossless(DEMO, "p0-t0-0", pfc_headroom=given, pfc_classes=3).buffer.headroom_bytes) == {wanted}


def test_off_may_be_written_as_yaml_reads_it() -> None:
    assert switch_settings(dataclasses.replace(DEMO, switch={"lossless": False})).lossless == "off"
    assert switch_settings(dataclasses.replace(DEMO, switch={"adaptive": False})).adaptive == "off"
    with pytest.raises(ConfigError, match=r"^switch\.lossless"):
        switch_settings(dataclasses.replace(DEMO, switch={"lossless": True}))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"buffer_bytes": 500_000, "pfc_classes": "0,1,2,3"}, "leave no pool"),
        (
            {"pfc_xoff_bytes": 4_096, "pfc_threshold": "static"},
            r"switch.pfc_reserved_bytes: 4096 is not below switch.pfc_xoff_bytes, which is 4096 \(lower .*, or raise ",
        ),
        ({"pfc_quanta": 100}, "before the pause can be repeated at"),
    ],
)
def test_settings_that_a_lossless_switch_cannot_keep(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        lossless(DEMO, "p0-t0-0", **wrong)
    assert {refused.value.where, *refused.value.also} & {f"switch.{key}" for key in wrong}


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
