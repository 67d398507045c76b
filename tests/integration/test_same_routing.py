"""Switches that route for themselves, with every fault of a routing core: one trace on real UDP and in virtual time.

Links are long, so that seconds of timers are some thousand steps of the fabric.
"""

from pathlib import Path

import pytest

from mrcfabric.units import NS_PER_S
from orchestrator.faults.kinds import OF_ROUTING
from orchestrator.scenario.resolve import load
from tests.integration.test_same_scenario import both
from tests.support.corners import corners

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
