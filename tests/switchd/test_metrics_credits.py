"""VLs, credits and tables come out of a real core's counters; other switches have no such series."""

from typing import Any

import pytest

from mrcfabric.topology import Topology
from mrcfabric.wire.lrh import MANAGEMENT_VL
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.metrics import render
from switchd.metrics_credits import DEFINITIONS
from tests.nicd.core.fabric import READY_NS, Fabric
from tests.support.counters import PROCESS, samples_of

PORTS = 4


def topology(**switch: Any) -> Topology:
    return Topology(
        name="demo", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "lid_sl": 1},
        switch={"forwarding": "lft", "lossless": "credits", **switch},
    )  # fmt: skip


def own(core: dict[str, Any]) -> dict[str, float]:
    names = tuple(definition.exposed_name for definition in DEFINITIONS)
    found = samples_of(render("demo", "p0-t0-0", PROCESS | {"core": core}))
    return {series: number for series, number in found.items() if series.partition("{")[0] in names}


def test_a_switch_of_an_mrc_fabric_has_none_of_them() -> None:
    assert own(build_switch(switch_config(Topology.demo(), "p0-t0-0")).counters()) == {}


@pytest.mark.parametrize("vls", [1, 4])
def test_there_is_one_series_per_port_and_vl(vls: int) -> None:
    found = own(build_switch(switch_config(topology(vls=vls), "p0-t0-0")).counters())
    of_vls = [definition for definition in DEFINITIONS if "vl" in definition.labels]
    of_management = {series for series in found if f'vl="{MANAGEMENT_VL}"' in series}
    assert len(found) == PORTS * vls * len(of_vls) + len(of_management) + 2 * PORTS + 10
    assert len(of_management) == 6 * PORTS, "it has no buffer and no credit"


def test_they_say_what_the_switch_did() -> None:
    fabric = Fabric(topology(vl_blocks=65))
    names = list(fabric.topology.nic_names())
    for name in names:
        fabric.memory(name, 1 << 18)
    for number, name in enumerate(names[1:]):
        fabric.connect(name, names[0], 100 + number, 200 + number)
        fabric.write(name, 100 + number, number, number << 16, 1 << 16, READY_NS)
    assert fabric.finish(READY_NS + 10_000_000)
    core: Any = fabric.simulator.node("p0-t0-0")
    found = own(core.counters())
    port = 'fabric="demo",node="p0-t0-0",peer="%s",plane="0",port="%s",towards="%s"'
    down, up = port % ("h000", 0, "nic"), port % ("p0-t1-0", 2, "t1")
    assert found[f'mrc_switch_vl_sent_bytes_total{{{down},vl="1"}}'] > 3 << 16
    assert found[f'mrc_switch_vl_sent_bytes_total{{{down},vl="0"}}'] == 0
    assert found[f'mrc_switch_vl_fills_total{{{up},vl="1"}}'] > 10
    assert found[f'mrc_switch_vl_full{{{up},vl="1"}}'] == 0
    assert found[f'mrc_switch_vl_credit_bytes{{{up},vl="1"}}'] == 65 * 64
    assert found[f'mrc_switch_vl_buffer_bytes_max{{{up},vl="1"}}'] == 65 * 64
    assert found[f"mrc_switch_flow_control_packets_total{{{up}}}"] > 10
    assert found[f"mrc_switch_lft_packets_total{{{down}}}"] >= 3 * 16
    t1: Any = fabric.simulator.node("p0-t1-0")
    stalls = samples_of(render("demo", "p0-t1-0", PROCESS | {"core": t1.counters()}))
    waits = 'fabric="demo",node="p0-t1-0",peer="p0-t0-0",plane="0",port="0",towards="t0",vl="1"'
    assert stalls[f"mrc_switch_vl_credit_stalls_total{{{waits}}}"] > 10
    assert 0 < stalls[f"mrc_switch_vl_credit_stalled_seconds_total{{{waits}}}"] < 1e-3
