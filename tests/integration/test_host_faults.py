"""Hosts that die, return, are kept apart and slow under verified work, all at once: shares of this machine as in sim.

The scenarios of examples/cluster run over real sshd in `test_over_ssh`.
"""

from pathlib import Path

import pytest

from orchestrator.cli.flags import hosts_of
from orchestrator.hosts.build import build
from orchestrator.measures.judge import verdict
from orchestrator.process.host_lease import LEASE_S
from orchestrator.scenario.resolve import load
from tests.support.runs import conducted

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

STORM_HOSTS = """\
hosts:
  vm1: {data: 127.0.0.1, run_dir: one}
  vm2: {data: 127.0.0.2, run_dir: two, labels: {rack: b}}
  vm3: {data: 127.0.0.3, run_dir: three, labels: {rack: b}}
rules:
  orchestrator: vm1
  pin:
    - {nodes: [p0-t1-1, p1-t1-1], host: vm2}
    - {nodes: [p1-t1-0, p1-t0-1], host: vm3}
    - {nodes: ["*"], host: vm1}
"""
STORM = """\
name: storm
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 1, evs_per_qp: 16, reserve_evs_per_qp: 4,
         rate_bps: 25G, nic: {rc_timeout: 6}}
length: 2000rtt
workload:
  - {name: ring, kind: ring_all_reduce, ranks: all, steps: 32, bucket_bytes: 128KiB}
method:
  - {name: before, at: 30rtt, for: 20rtt, fault: switch_reboot, selector: {nodes: p1-t1-0}}
  - {name: crash, at: 40rtt, for: 30rtt, fault: host_crash, selector: {hosts: vm3}}
  - {name: within, at: 45rtt, for: 10rtt, fault: switch_reboot, selector: {nodes: p1-t1-0}}
  - {name: behind, at: 60rtt, for: 25rtt, fault: switch_reboot, selector: {nodes: p1-t0-1}}
  - {name: dark, at: 60rtt, for: 15rtt, fault: host_partition, selector: {hosts: "vm1~vm3"}}
  - {name: both, at: 90rtt, for: 15rtt, fault: host_crash, selector: {labels: rack=b}}
  - {name: again, at: 100rtt, for: 15rtt, fault: host_crash, selector: {hosts: vm2}}
  - {name: away, at: 120rtt, for: 50rtt, fault: switch_reboot, selector: {nodes: p0-t1-1}}
  - {name: slow, at: 120rtt, for: 15rtt, fault: host_slow, cpu: 10%, selector: {hosts: vm1}}
  - {name: amid, at: 130rtt, for: 10rtt, fault: host_crash, selector: {hosts: vm2}}
  - {name: unforeseen, at: 145rtt, when: &begun {measure: steps, of: ring, at_least: 1}, for: 10rtt, fault: host_crash,
     selector: {hosts: vm2}}
  - {name: cut, at: 150rtt, when: *begun, for: 20rtt, fault: host_cut_off, selector: {hosts: vm3}}
expect:
  - {measure: completed, at_least: 1}
  - {measure: bytes_wrong, at_most: 0}
  - {measure: qp_errors, at_most: 0}
"""
"""Hosts that crash while nodes of theirs are away, come back in between, or are to come back later; two at once, one
twice at once; and one that crashes though a process waits there for a life that begins later."""


@pytest.mark.long
@pytest.mark.parametrize("system", ["mrc", "roce", "irn", "uet", "uet-rccc"])
async def test_a_storm_of_host_faults_is_that_of_virtual_time(system: str, tmp_path: Path) -> None:
    file, inventory = tmp_path / "storm.yaml", tmp_path / "hosts.yaml"
    file.write_text(STORM)
    inventory.write_text(STORM_HOSTS.replace("run_dir: ", f"run_dir: {tmp_path}/"))
    plan = load(str(file), [f"system={system}"], hosts=hosts_of(inventory))
    said: list[str] = []
    cluster = build(plan.topology, inventory, "local", None, LEASE_S, said.append)
    expected = await conducted(plan, "sim", tmp_path)
    seen = await conducted(plan, "udp", tmp_path / "run", cluster)
    assert (seen.ended, seen.lost) == ("complete", ""), said
    assert cluster.restarts == {1: 3, 2: 2}
    assert (seen.fidelity["late_share"], seen.fidelity["host_drops"]) == (0, 0)
    assert [finding.record() for finding in verdict(plan.expectations, expected).findings if not finding.held] == []
    assert seen.looks == expected.looks
    assert seen.events == expected.events
    assert seen.trace_digest == expected.trace_digest != ""
