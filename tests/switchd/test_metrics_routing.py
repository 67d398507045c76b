"""What a routing core counts comes out as series; switches that do not route have none of them."""

from typing import Any

import pytest

from mrcfabric import bundles
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from mrcfabric.units import NS_PER_S
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.commands import SetRouting
from switchd.metrics import render
from switchd.metrics_routing import DEFINITIONS
from tests.support.counters import PROCESS, samples_of
from tests.support.speaking_fabric import SpeakingFabric

S = NS_PER_S
NAMES = tuple(definition.exposed_name for definition in DEFINITIONS)


def own(node: str, core: dict[str, Any], now_ns: int = 0) -> dict[str, float]:
    """The series of routing of one switch, by name, and by the label where there is one."""
    process = {**PROCESS["process"], "now_ns": now_ns}
    found = samples_of(render("demo", node, {**PROCESS, "process": process, "core": core}))
    node_labels = f'fabric="demo",node="{node}",plane="0"'
    return {
        series.replace(node_labels, "").replace(",}", "}").replace("{,", "{"): number
        for series, number in found.items()
        if series.partition("{")[0] in NAMES
    }


@pytest.mark.parametrize("system", bundles.names())
def test_switches_that_do_not_route_have_none_of_them(system: str) -> None:
    topology = with_system(Topology.demo(), system)
    if topology.switch.get("routing") == "bgp":
        return
    for name in ("p0-t0-0", "p0-t1-0"):
        assert own(name, build_switch(switch_config(topology, name)).counters()) == {}


@pytest.mark.parametrize("bfd", [False, True])
@pytest.mark.parametrize("switch", [{}, {"lossless": "pfc"}])
def test_they_say_what_the_core_has_done(switch: dict[str, Any], bfd: bool) -> None:
    fabric = SpeakingFabric(3, 2, 1, bfd=bfd, bgp_dampening=True, **switch)
    fabric.sim.run(2 * S)
    name = "p0-t0-0"
    before = own(name, fabric.switches[name].counters(), 2 * S)
    assert before['mrc_switch_routing_sessions{state="Established"}'] == 2
    assert before['mrc_switch_routing_sessions{state="Active"}'] == 0
    assert before.get('mrc_switch_routing_bfd_sessions{state="up"}') == (2 if bfd else None)
    assert before["mrc_switch_routing_prefixes{}"] == 3
    assert before["mrc_switch_routing_table_entries{}"] == 2
    assert "mrc_switch_routing_table_age_seconds{}" not in before, "nothing has changed since the warm start"
    for turn in range(3):
        fabric.sim.command("p0-t1-0", (3 + 2 * turn) * S, SetRouting(2 * turn, withdrawn=True))
        fabric.sim.command("p0-t1-0", (4 + 2 * turn) * S, SetRouting(2 * turn + 1))
    fabric.sim.run(9 * S)
    after = own(name, fabric.switches[name].counters(), 9 * S)
    # A T1 tells a T0 of the two other racks, and of its own, which that one refuses and forgets with the rest.
    assert after["mrc_switch_routing_damped_routes{}"] == 2
    taken_back = 'mrc_switch_routing_withdrawals_total{direction="in"}'
    assert after[taken_back] - before[taken_back] in (6, 9)
    assert after["mrc_switch_routing_table_writes_total{}"] > before["mrc_switch_routing_table_writes_total{}"]
    assert 0 < after["mrc_switch_routing_table_age_seconds{}"] < 4
    assert after["mrc_switch_routing_waiting_prefixes{}"] == 0


def test_every_definition_has_a_series() -> None:
    fabric = SpeakingFabric(2, 2, 1, bfd=True)
    fabric.cut("p0-t0-0", "p0-t1-0", S)
    fabric.sim.run(2 * S)
    fabric.switches["p0-t0-0"].router.bad["short"] = 1  # type: ignore[attr-defined]
    found = own("p0-t0-0", fabric.switches["p0-t0-0"].counters(), 2 * S)
    assert {series.partition("{")[0] for series in found} == set(NAMES)
