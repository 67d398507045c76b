"""The tables `wire` and `dscp` of a topology become the same choices at every node, or one clear complaint."""

from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.topology_file import read
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.entropy import EvOrder
from mrcfabric.wire.options import DEFAULT_OPTIONS
from mrcfabric.wire_settings import code_points, wire_options
from nicd.compose import nic_config
from orchestrator.sim.packet_walk import walk
from switchd.compose import switch_config


def test_without_a_table_everything_is_as_the_defaults_say() -> None:
    assert wire_options(Topology.demo()) == DEFAULT_OPTIONS
    assert code_points(Topology.demo()) == Dscp()


@pytest.mark.spec("MRC 1.0", "7.5.5.2")
def test_a_port_that_is_sent_is_accepted_too() -> None:
    options = wire_options(Topology(wire={"udp_port": 5000, "ev_order": "port_high", "hop_limit": 9}))
    assert (options.udp_port, options.ev_order, options.hop_limit) == (5000, EvOrder.PORT_HIGH, 9)
    assert options.udp_ports_accepted == (4791, 4971, 5000)


@pytest.mark.parametrize(
    ("nic", "lmc"),
    [({}, -1), ({"lid_lmc": 3}, -1), ({"rc_path": "lid"}, 0), ({"rc_path": "lid", "lid_lmc": 7}, 7),
     ({"rc_path": "lid", "lid_lmc": 9}, -1)],
)  # fmt: skip
def test_whether_packets_begin_with_an_lrh_follows_from_the_nics(nic: dict[str, Any], lmc: int) -> None:
    assert wire_options(Topology(nic=nic)).lid_lmc == lmc


@pytest.mark.parametrize(
    ("wire", "where"),
    [
        ({"lid_lmc": 1}, "wire.lid_lmc"),
        ({"udp_port": 0}, "wire.udp_port"),
        ({"udp_port": "4791"}, "wire.udp_port"),
        ({"udp_ports_accepted": 4791}, "wire.udp_ports_accepted"),
        ({"ev_order": "left"}, "wire.ev_order"),
        ({"ev_order": True}, "wire.ev_order"),
        ({"hop_limit": 300}, "wire.hop_limit"),
        ({"colour": 1}, "wire.colour"),
    ],
)
def test_a_wrong_choice_is_named(wire: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        wire_options(Topology(wire=wire))
    assert caught.value.where == where


def test_every_node_gets_the_same_code_points() -> None:
    topology = Topology(dscp={"trimmed": 11, "trimmed_lasthop": 21})
    t0 = switch_config(topology, "p0-t0-0")
    assert nic_config(topology, "h000").dscp == t0.dscp == Dscp(trimmed=11, trimmed_lasthop=21)
    assert {port.trim_dscp for port in t0.ports} == {11, 21}
    with pytest.raises(ConfigError, match=r"dscp\.control: 4 is already"):
        code_points(Topology(dscp={"control": 4}))


def test_a_file_says_where_the_mistake_stands(tmp_path: Path) -> None:
    path = tmp_path / "fabric.yaml"
    path.write_text("planes: 2\nwire:\n  udp_port: 4971\n  ev_order: sideways\n")
    fabric = read(path, ["dscp.control=48"])
    assert code_points(fabric.topology).control == 48
    with pytest.raises(ConfigError) as caught:
        wire_options(fabric.topology)
    assert fabric.locate(caught.value).where == f"{path}:4"


def test_a_walk_is_made_of_the_fabrics_own_packets() -> None:
    walked = walk(Topology(wire={"udp_port": 4971, "ev_order": "port_high"}), "h000", "h005", 26, 64)
    assert walked["outcome"] == "delivered"
