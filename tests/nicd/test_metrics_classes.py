"""Pauses of a NIC's ports come out of a real NIC's counters, and only where switches pause."""

from dataclasses import replace
from typing import Any

from mrcfabric.metrics import families, text
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.nic import Nic
from nicd.metrics_classes import CLASS_DEFINITIONS
from tests.support.counters import samples_of


def core_of(**switch: Any) -> dict[str, Any]:
    topology = replace(Topology.demo(), nic={"transport": "rc"}, switch={"forwarding": "ecmp", **switch})
    return Nic(nic_config(topology, "h000")).counters()


def samples(core: dict[str, Any]) -> dict[str, float]:
    return samples_of(text(families(CLASS_DEFINITIONS, "demo", "h000", {"core": core})))


def test_a_nic_that_nobody_pauses_has_none() -> None:
    assert samples(core_of()) == {}


def test_pauses_are_told_by_plane_and_class() -> None:
    core = core_of(lossless="pfc")
    assert set(samples(core).values()) == {0}
    assert len(samples(core)) == 2 * 8 * 8
    core["ports"]["5"]["classes"][3] |= {"pauses": 4, "pause_ns": 5_000_000_000}
    found = {name: value for name, value in samples(core).items() if value}
    labels = '{class="3",fabric="demo",node="h000",plane="5"}'
    assert found == {f"mrc_nic_port_pauses_total{labels}": 4, f"mrc_nic_port_paused_seconds_total{labels}": 5}
