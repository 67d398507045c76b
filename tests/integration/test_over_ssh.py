"""A fabric over three hosts and the orchestrator's, started over a real sshd by the command line as an operator has it.

Everything happens in the networks of `tests.support.cluster`, which nothing joins to the machine's.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator import run_folder
from tests.support.cluster import SSH_PORT, USER, Cluster, Family, Host, cluster
from tests.support.namespaces import Finished
from tests.support.wait import eventually, eventually_true

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

DEADLINE_S = 60.0
SCENARIO = """\
name: apart
fabric: {{planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2, mtu_bytes: {mtu_bytes}, evs_per_qp: 16,
         reserve_evs_per_qp: 4}}
seed: paper
length: {length}
workload:
  - {{name: pair, kind: p2p, ranks: [h000, h003]}}
method:
  - {{name: reboot, at: 20rtt, for: 30rtt, fault: switch_reboot, selector: {{nodes: p0-t1-0}}}}
expect:
  - {{measure: qp_errors, at_most: 0}}
  - {{measure: bytes_verified, at_least: 64KiB}}
"""
RULES = """\
rules:
  pin:
    - {nodes: [tier=nic], host: "for=ranks"}
    - {nodes: "p0-*", host: "for=ranks"}
    - {nodes: "p1-*", host: h3}
"""
"""NICs and plane 0 on the first two hosts, all of plane 1 on the third."""


def inventory(hosts: Cluster, mtu: int) -> str:
    """The file in which an operator would describe them; their Python is the one of the tests."""
    lines = ["hosts:"]
    for host in hosts:
        labels = "plane" if host is hosts[2] else "ranks"
        lines += [
            f"  {host.name}:",
            f"    data: '{host.address}'",
            f"    mtu: {mtu}",
            f"    labels: {{for: {labels}}}",
            f"    python: {sys.executable}",
            f"    ssh: {{port: {SSH_PORT}, user: {USER}, key: {hosts.user_key}, known_hosts: {hosts.known_hosts}}}",
        ]
    return "\n".join(lines) + "\n" + RULES


async def mrcfabric(host: Host, *words: str) -> Finished:
    """One command of the orchestrator's on that host."""
    return await host.run([sys.executable, "-m", "orchestrator.cli", *words])


def report(host: Host, folder: str) -> Any:
    """What a run found out."""
    return json.loads((host.folder / folder / "report.json").read_text())


def ours(hosts: Sequence[Host]) -> list[str]:
    """What runs there besides sshd."""
    found = []
    for host in hosts:
        for pid in host.pids():
            if pid != host.init:
                try:
                    found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
                except OSError:
                    continue
    return found


def held(hosts: Sequence[Host]) -> list[Path]:
    """Folders of runs that are still somebody's."""
    return [lock.parent for host in hosts for lock in host.folder.rglob("lock") if run_folder.is_held(lock.parent)]


@pytest.mark.parametrize(("family", "mtu", "mtu_bytes"), [(4, 1500, 1024), (6, 9000, 4096)])
async def test_a_scenario_over_three_hosts_is_that_of_virtual_time(family: Family, mtu: int, mtu_bytes: int) -> None:
    async with cluster(hosts=3, family=family, mtu=mtu) as hosts:
        home = hosts.home
        (home.folder / "hosts.yaml").write_text(inventory(hosts, mtu))
        (home.folder / "apart.yaml").write_text(SCENARIO.format(mtu_bytes=mtu_bytes, length="100rtt"))
        words = ("run", "apart.yaml", "--trace", "--plain", "--report")
        done, simulated = await asyncio.gather(
            mrcfabric(home, *words, "udp", "--inventory", "hosts.yaml"),
            mrcfabric(home, *words, "sim", "--backend", "sim"),
        )
        assert (done.code, simulated.code) == (0, 0), done.out + done.err + simulated.err
        seen, expected = report(home, "udp"), report(home, "sim")
        assert (seen["verdict"], seen["trace_digest"]) == ("held", expected["trace_digest"])
        assert seen["trace_digest"]
        figures = seen["fidelity"]
        assert (figures["late_share"], figures["host_drops"]) == (0, 0)
        await eventually(lambda: not ours([*hosts]), DEADLINE_S)
        assert not held([*hosts, home])
