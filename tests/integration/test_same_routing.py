"""Switches that route for themselves, with every fault of a routing core: one trace on real UDP and in virtual time.

Links are long, so that seconds of timers are some thousand steps of the fabric.
"""

from pathlib import Path
from typing import Any

import pytest

from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.faults.kinds import OF_ROUTING
from orchestrator.live.event_lines import of_nic
from orchestrator.measures.convergence import of_fault
from orchestrator.scenario.resolve import load
from orchestrator.sim.fabric import SimulatedFabric
from tests.integration.test_same_scenario import both
from tests.support.corners import corners
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SCENARIO = """
name: routed
fabric:
  planes: 1
  t0_per_plane: 2
  t1_per_plane: 2
  nics_per_t0: 1
  link_delay_ns: 4ms
  rate_bps: 100M
  evs_per_qp: 8
  reserve_evs_per_qp: 0
  nic: {{transport: {transport}{nic}}}
  switch: {{forwarding: ecmp, routing: bgp, bfd: true{switch}}}
seed: paper
nominal_dilation: 1
length: 7s
look: 200ms
settle: 0
workload:
  - {{name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 16KiB, qps: 2, for: 6s}}
method:
  - {{name: drain, at: 500ms, for: 5s, fault: graceful_shutdown, selector: {{nodes: p0-t1-0}}}}
  - {{name: reboot, at: 700ms, for: 300ms, fault: switch_reboot, selector: {{nodes: p0-t1-0}}}}
  - {{name: hang, at: 1s, for: 1s, fault: routing_hang, selector: {{nodes: p0-t0-1}}}}
  - {{name: slow, at: 1500ms, for: 3s, fault: slow_routing, factor: 7, selector: {{tier: t1}}}}
  - {{name: stuck, at: 2s, for: 1s, fault: fib_stuck, selector: {{nodes: p0-t0-0}}}}
  - {{name: zombie, at: 2500ms, for: 2s, fault: stuck_route, nic: h001, selector: {{nodes: p0-t1-1}}}}
  - {{name: leak, at: 3s, for: 1s, fault: route_leak, nic: h000, selector: {{nodes: p0-t0-1}}}}
  - {{name: storm, at: 3500ms, for: 1s, fault: withdrawal_storm, period: 300ms, selector: {{nodes: p0-t1-1}}}}
  - {{name: down, at: 2s, for: 100ms, fault: session_down, selector: {{links: p0-t0-0~p0-t1-1}}}}
  - {{name: flaps, at: 4500ms, for: 1s, fault: session_flap, period: 500ms, duty: 0.1, selector: {{of: p0-t0-1}}}}
"""
OF_TRANSPORTS = {
    "rc": ("rc", ", cc: none, rc_timeout: 15", ", trim: false, trim_last_hop: false, ecn: false"),
    "uet": ("uet", "", ""),
    "pfc": ("rc", ", rc_timeout: 15", ", trim: false, trim_last_hop: false, lossless: pfc"),
}


@pytest.mark.parametrize("what", corners(list(OF_TRANSPORTS), "rc", "uet"))
@pytest.mark.timeout(240)
async def test_faults_of_routing_cores_are_the_same_on_both_backends(what: str, tmp_path: Path) -> None:
    transport, nic, switch = OF_TRANSPORTS[what]
    file = tmp_path / "routed.yaml"
    file.write_text(SCENARIO.format(transport=transport, nic=nic, switch=switch))
    plan = load(str(file))
    assert {fault.kind for fault in plan.faults} >= OF_ROUTING
    seen = await both(plan, tmp_path)
    met = {one.fault.id: one.met_packets for one in seen.faults}
    assert all(met.values()), met
    assert seen.looks[-1].at_ns > 6 * NS_PER_S


ROUTED = Topology(
    name="who-knew", planes=1, t0_per_plane=3, t1_per_plane=2, nics_per_t0=1, link_delay_ns=4_000_000,
    rate_bps=100_000_000, evs_per_qp=8, reserve_evs_per_qp=0, nic={"transport": "rc", "cc": "none"},
    switch={"forwarding": "ecmp", "routing": "bgp", "trim": False, "trim_last_hop": False, "ecn": False},
)  # fmt: skip
CUT = once("link_down", "p0-t0-0~p0-t1-1", at_ns=3 * NS_PER_S, until_ns=20 * NS_PER_S, fault_id="cut")
SEEN_NS = 5 * NS_PER_S


def line(node: str, record: dict[str, Any]) -> dict[str, Any]:
    peers = [end.peer for end in ROUTED.ports(node)]
    return of_nic(node, 0.0, record, peers=peers)


@pytest.mark.timeout(120)
async def test_who_knew_what_when_is_the_same_on_real_udp_as_in_virtual_time(tmp_path: Path) -> None:
    edge = {"at_ns": CUT.start_ns, "node": "", "kind": "fault", "id": CUT.id}
    told: list[dict[str, Any]] = []
    async with Fabric.launch(ROUTED, tmp_path / "run") as fabric:
        await fabric.limit(SEEN_NS, "test")
        await fabric.inject(CUT)
        await eventually(lambda: fabric.time.page.fabric_front() >= SEEN_NS, deadline_s=60)
        for name in ROUTED.switch_names():
            answer = await fabric.call(name, "events", {"since": 0})
            told += [line(name, event) for event in answer["events"] if event["at_ns"] < SEEN_NS]
        await fabric.limit(None, "test")
    expected: list[dict[str, Any]] = []
    twin = SimulatedFabric(
        ROUTED, on_events=lambda name, events: expected.extend(line(name, event.record()) for event in events)
    )
    twin.inject(CUT)
    twin.run(SEEN_NS - 1)
    (seen,), (wanted,) = of_fault([edge, *told], CUT.id), of_fault([edge, *expected], CUT.id)
    assert seen.record() == wanted.record()
    assert {one.by for one in seen.switches} == {"carrier", "update"}
    assert len(seen.switches) == 4
