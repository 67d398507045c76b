"""The kind of core follows from the configuration."""

from dataclasses import replace

from mrcfabric.topology import Topology
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.routed import RoutedSwitch
from switchd.core.switch import Switch


def test_usids_have_the_loop_made_for_them() -> None:
    assert type(build_switch(switch_config(Topology.demo(), "p0-t0-0"))) is Switch


def test_addresses_are_routed() -> None:
    topology = replace(Topology.demo(), switch={"forwarding": "ecmp"})
    core = build_switch(switch_config(topology, "p0-t0-0"), 77)
    assert type(core) is RoutedSwitch
    assert core.now_ns == 77
