"""Pauses, the buffer and the hash's choices come out of a real core's counters; other switches have no such series."""

from dataclasses import replace

import pytest

from mrcfabric.topology import Topology
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.metrics import render
from switchd.metrics_lossless import DEFINITIONS
from tests.support.counters import PROCESS, samples_of
from tests.support.roce_hosts import HostFabric


def samples(topology: Topology, name: str) -> dict[str, float]:
    core = build_switch(switch_config(topology, name)).counters()
    return samples_of(render("demo", name, PROCESS | {"core": core}))


def own(found: dict[str, float]) -> dict[str, float]:
    names = tuple(definition.exposed_name for definition in DEFINITIONS)
    return {series: number for series, number in found.items() if series.partition("{")[0] in names}


def test_a_switch_of_an_mrc_fabric_has_none_of_them() -> None:
    assert own(samples(Topology.demo(), "p0-t0-0")) == {}


@pytest.mark.parametrize(("classes", "count"), [("3", 1), ("3,4", 2)])
def test_there_is_one_series_per_port_and_lossless_class(classes: str, count: int) -> None:
    topology = replace(Topology.demo(), switch={"forwarding": "ecmp", "lossless": "pfc", "pfc_classes": classes})
    found = own(samples(topology, "p0-t0-0"))
    per_class = [definition for definition in DEFINITIONS if "class" in definition.labels]
    assert len(found) == 8 * count * len(per_class) + 3 + 4 + 1
    assert len(own(samples(topology, "p0-t1-0"))) == 2 * count * len(per_class) + 3 + 1, "a T1 has no group"


def test_they_say_what_the_switch_did() -> None:
    topology = Topology(
        planes=1, t0_per_plane=2, t1_per_plane=1, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
        switch={"forwarding": "ecmp", "lossless": "pfc", "pfc_threshold": "static", "pfc_xoff_bytes": 50_000},
    )  # fmt: skip
    fabric = HostFabric(topology)
    fabric.flow(0, 2)
    fabric.pause(2, 10_000, quanta=65_535)
    fabric.run(100_000)
    core = fabric.switches["p0-t0-1"].counters()
    found = samples_of(render("demo", "p0-t0-1", PROCESS | {"core": core}))
    node = 'class="3",fabric="demo",node="p0-t0-1",peer="%s",plane="0",port="%s",towards="%s"'
    up, down = node % ("p0-t1-0", 2, "t1"), node % ("h002", 0, "nic")
    assert found[f"mrc_switch_pfc_pause_frames_sent_total{{{up}}}"] == 1
    assert found[f"mrc_switch_pfc_asking{{{up}}}"] == 1
    assert found[f"mrc_switch_pfc_pause_frames_received_total{{{down}}}"] == 1
    assert found[f"mrc_switch_pfc_paused_seconds_total{{{down}}}"] == pytest.approx(89e-6, rel=0.02)
    held = found[f"mrc_switch_pfc_buffer_bytes{{{up}}}"]
    assert 50_000 < held == found['mrc_switch_buffer_bytes{fabric="demo",node="p0-t0-1",plane="0"}']
    leaf = fabric.switches["p0-t0-0"].counters()
    member = 'fabric="demo",node="p0-t0-0",peer="p0-t1-0",plane="0",port="2",towards="t1"'
    sent = samples_of(render("demo", "p0-t0-0", PROCESS | {"core": leaf}))[f"mrc_switch_ecmp_packets_total{{{member}}}"]
    assert sent == leaf["received"] > 20
