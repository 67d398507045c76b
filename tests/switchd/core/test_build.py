"""The kind of core follows from the configuration."""

from dataclasses import replace

import pytest

from mrcfabric.topology import Topology
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.forwarding.ecmp import EcmpForwarding
from switchd.core.forwarding.usid import UsidForwarding
from switchd.core.lossless import LosslessSwitch
from switchd.core.routed import RoutedSwitch
from switchd.core.switch import Switch


def test_usids_have_the_loop_made_for_them() -> None:
    assert type(build_switch(switch_config(Topology.demo(), "p0-t0-0"))) is Switch


def test_addresses_are_routed() -> None:
    topology = replace(Topology.demo(), switch={"forwarding": "ecmp"})
    core = build_switch(switch_config(topology, "p0-t0-0"), 77)
    assert type(core) is RoutedSwitch
    assert core.now_ns == 77


@pytest.mark.parametrize(("forwarding", "kind"), [("ecmp", EcmpForwarding), ("usid", UsidForwarding)])
def test_whoever_pauses_goes_from_instant_to_instant(forwarding: str, kind: type) -> None:
    topology = replace(Topology.demo(), switch={"forwarding": forwarding, "lossless": "pfc"})
    core = build_switch(switch_config(topology, "p0-t1-0"), 77)
    assert type(core) is LosslessSwitch
    assert type(core._forwarding) is kind
    assert core.now_ns == 77
