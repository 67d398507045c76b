"""A fabric over three hosts and the orchestrator's, started over a real sshd by the command line as an operator has it.

Everything happens in the networks of `tests.support.cluster`, which nothing joins to the machine's.
"""

import asyncio
import hashlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.cores import CORES
from mrcfabric.units import MIB
from orchestrator.process import run_folder
from tests.support import carried
from tests.support.cluster import SSH_PORT, USER, Cluster, Host, cluster
from tests.support.namespaces import Finished
from tests.support.wait import eventually, eventually_true

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

DEADLINE_S = 60.0
FILE_BYTES = 2_500_001
SCENARIO = """\
name: apart
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2, evs_per_qp: 16,
         reserve_evs_per_qp: 4}
seed: paper
length: 100rtt
workload:
  - {name: pair, kind: p2p, ranks: [h000, h003]}
method:
  - {name: reboot, at: 20rtt, for: 30rtt, fault: switch_reboot, selector: {nodes: p0-t1-0}}
  - {name: restart, at: 25rtt, for: 20rtt, fault: host_crash, selector: {hosts: h3}}
  - {name: parted, at: 55rtt, for: 10rtt, fault: host_partition, selector: {hosts: h1~h2}}
  - {name: slow, at: 55rtt, for: 10rtt, fault: host_slow, selector: {hosts: h2}}
expect:
  - {measure: qp_errors, at_most: 0}
  - {measure: bytes_verified, at_least: 64KiB}
"""
TOPOLOGY = """\
name: apart
planes: 2
t0_per_plane: 2
t1_per_plane: 2
nics_per_t0: 2
mtu_bytes: 1024
evs_per_qp: 16
reserve_evs_per_qp: 4
dilation: 10000
"""
"""Paced, so that what is broken as soon as a pair works is broken while it works: that takes 5 s."""
LINK = "p0-t0-0~p0-t1-0"
PLANE = ("p1-t0-0", "p1-t0-1", "p1-t1-0", "p1-t1-1")
MESSAGES = 12
WORK = f"""
import asyncio, json
from pathlib import Path
from orchestrator.fabric import Fabric

async def main():
    async with Fabric.attach("apart") as fabric:
        work = await fabric.start("p2p", ranks=["h000", "h003"], figures=dict(messages={MESSAGES}))
        await fabric.until("bytes_verified", at_least=1)
        Path("begun").touch()
        ranks = (await work.finished()).ranks
        verified, wrong = (sum(getattr(rank, key) for rank in ranks) for key in ("bytes_verified", "bytes_wrong"))
        counted = await fabric.counters()
        down = sorted({{*fabric.topology.node_names()}} - {{*counted}})
        planes = sorted({{node[:2] for node in counted if node[0] == "p" and counted[node]["fidelity"]["frames_in"]}})
        print(json.dumps(dict(verified=verified, wrong=wrong, down=down, planes=planes)))

asyncio.run(main())
"""
"""A script that has two NICs work to the end, whatever dies meanwhile."""
RIGHT = {"verified": MESSAGES << 20, "wrong": 0}
RULES = """\
rules:
  pin:
    - {nodes: [tier=nic], host: "for=ranks"}
    - {nodes: "p0-*", host: "for=ranks"}
    - {nodes: "p1-*", host: h3}
"""
"""NICs and plane 0 on the first two hosts, all of plane 1 on the third."""
EXAMPLES = Path(__file__).parents[2] / "examples" / "cluster"
SCENARIOS = ("plane-lost", "rank-lost", "restart-and-partition")
LEADER = "  orchestrator: vm1\n"
"""There the first host leads; here one more does, which carries no node."""


def inventory(hosts: Cluster, mtu: int, prefix: str = "h", rules: str = RULES) -> str:
    """The file in which an operator would describe them; their Python is the one of the tests."""
    lines = ["hosts:"]
    for number, host in enumerate(hosts, 1):
        labels = "plane" if host is hosts[2] else "ranks"
        lines += [
            f"  {prefix}{number}:",
            f"    data: '{host.address}'",
            f"    mtu: {mtu}",
            f"    labels: {{for: {labels}}}",
            f"    python: {sys.executable}",
            f"    ssh: {{port: {SSH_PORT}, user: {USER}, key: {hosts.user_key}, known_hosts: {hosts.known_hosts}}}",
        ]
    return "\n".join(lines) + "\n" + rules


async def mrcfabric(host: Host, *words: str) -> Finished:
    """One command of the orchestrator's on that host."""
    return await host.run([sys.executable, "-m", "orchestrator.cli", *words])


async def begun(home: Host) -> "asyncio.Task[Finished]":
    """Two NICs at work, the first bytes verified."""
    mark = home.folder / "begun"
    mark.unlink(missing_ok=True)
    working = asyncio.create_task(home.run([sys.executable, "-c", WORK]))
    await eventually(lambda: mark.exists() or working.done(), DEADLINE_S)
    return working


async def stalled(home: Host) -> bool:
    """Whether the status says that fabric time waits for somebody."""
    return "STALLED   fabric time waits for p1-" in (await mrcfabric(home, "status")).well()


async def in_force(home: Host, fault: str) -> bool:
    """Whether the one fault of the list, which begins so, is in force."""
    said = (await mrcfabric(home, "fault", "list")).well()
    assert said.startswith(fault), said
    return ", ACTIVE, " in said


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


def logins(host: Host) -> list[int]:
    """The processes of sshd there that serve somebody."""
    comms = {pid: Path(f"/proc/{pid}/comm") for pid in host.pids() if pid != host.init}
    return [pid for pid, path in comms.items() if path.exists() and path.read_text().startswith("sshd")]


def held(hosts: Sequence[Host]) -> list[Path]:
    """Folders of runs that are still somebody's."""
    return [lock.parent for host in hosts for lock in host.folder.rglob("lock") if run_folder.is_held(lock.parent)]


async def taken_back(home: Host, third: Host) -> None:
    """The third host boots, and is taken back as soon as its ports are free; plane 1 carries its part again."""
    refused = await mrcfabric(home, "host", "restart", "orchestrator")
    assert (refused.code, "leads the fabric" in refused.err) == (1, True)
    refused = await mrcfabric(home, "host", "restart", "h3")
    assert (refused.code, refused.err.count("\n"), "host h3" in refused.err) == (2, 1, True)
    await third.boot()
    with third.network(), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as stranger:
        stranger.bind((third.address, 10_050))
        refused = await mrcfabric(home, "host", "restart", "h3")
        assert refused.err.startswith("mrcfabric: host h3: ports 10048..10071: port 10050 is in use by ")
        assert refused.err.endswith(" (mend that, and restart the host again)\n")
    assert "h3 at fd4d:5243::3: 0 of 4 daemons run, LOST: " in (await mrcfabric(home, "host", "list")).well()
    said = (await mrcfabric(home, "host", "restart", "h3")).well()
    assert said.startswith("host h3 has been started anew: 4 daemons run from ")
    said = (await mrcfabric(home, "host", "list")).well()
    assert "h3 at fd4d:5243::3: 4 of 4 daemons run, started anew 1 x" in said
    rows = json.loads((await mrcfabric(home, "host", "list", "--json")).well())
    assert {row["cores"].split()[0] for row in rows} == {CORES.line.split()[0]}
    assert json.loads((await (await begun(home))).well()) == {**RIGHT, "down": [], "planes": ["p0", "p1"]}
    events = (await mrcfabric(home, "events", "--kind", "host_lost", "--kind", "host_restarted")).well()
    assert [line.split()[3] for line in events.splitlines()] == ["host_lost", "host_restarted"]
    log = (await mrcfabric(home, "logs", "p1-t1-1")).well()
    assert log.count(" ready") == 2


async def alike(home: Host, file: str, *more: str) -> None:
    """The scenario holds over ssh and in virtual time, with the same course, every byte right and nothing late."""
    words = ("run", file, "--inventory", "hosts.yaml", "--trace", "--plain", *more, "--report")
    done, simulated = await asyncio.gather(
        mrcfabric(home, *words, "udp"), mrcfabric(home, *words, "sim", "--backend", "sim")
    )
    assert (done.code, simulated.code) == (0, 0), done.out + done.err + simulated.err
    seen, expected = report(home, "udp"), report(home, "sim")
    assert (seen["verdict"], seen["trace_digest"]) == ("held", expected["trace_digest"])
    assert seen["trace_digest"]
    for row in (*seen["faults"], *expected["faults"]):
        del row["recovery_wall_ms"]  # the machine's
    for key in ("findings", "faults", "programs", "totals", "timeline", "evs"):
        assert seen[key] == expected[key]
    assert seen["totals"]["bytes_verified"] > seen["totals"]["bytes_wrong"] == 0
    assert (seen["fidelity"]["late_share"], seen["fidelity"]["host_drops"]) == (0, 0)


@pytest.mark.long(40)
async def test_the_scenarios_of_the_examples_over_three_hosts_are_those_of_virtual_time() -> None:
    async with cluster(hosts=3, family=4, mtu=9000) as hosts:
        home = hosts.home
        carried.lay(hosts)
        rules = (EXAMPLES / "hosts.yaml").read_text().partition("rules:\n")
        assert LEADER in rules[2]
        text = inventory(hosts, 9000, "vm", rules[1] + rules[2].replace(LEADER, ""))
        (home.folder / "hosts.yaml").write_text(text)
        for name in SCENARIOS:
            await alike(home, str(EXAMPLES / f"{name}.yaml"))
        await eventually(lambda: not ours([*hosts]), DEADLINE_S)
        assert not held([*hosts, home])


@pytest.mark.long(15)
async def test_hosts_that_crash_part_and_slow_down_over_version_6_leave_the_trace_of_virtual_time() -> None:
    async with cluster(hosts=3, family=6, mtu=1500) as hosts:
        home = hosts.home
        carried.lay(hosts)
        (home.folder / "hosts.yaml").write_text(inventory(hosts, 1500))
        (home.folder / "apart.yaml").write_text(SCENARIO)
        await alike(home, "apart.yaml", "--set", "fabric.mtu_bytes=1024")
        await eventually(lambda: not ours([*hosts]), DEADLINE_S)
        assert not held([*hosts, home])


@pytest.mark.long(20)
async def test_roce_over_three_hosts_leaves_the_trace_of_virtual_time() -> None:
    """Pauses and notifications cross the network between hosts, too."""
    async with cluster(hosts=3, family=6, mtu=9000) as hosts:
        home = hosts.home
        carried.lay(hosts)
        (home.folder / "hosts.yaml").write_text(inventory(hosts, 9000))
        await alike(
            home, str(EXAMPLES.parent / "any-system.yaml"), "--system", "roce", "--set", "fabric.mtu_bytes=2048"
        )
        seen = report(home, "udp")
        assert seen["system"] == "roce"
        assert {one["id"]: bool(one["met_packets"]) for one in seen["faults"]} == dict.fromkeys(
            ("cut", "lossy", "reboot", "slow"), True
        )
        await eventually(lambda: not ours([*hosts]), DEADLINE_S)
        assert not held([*hosts, home])


@pytest.mark.long(50)
async def test_the_demonstration_over_three_hosts_passes() -> None:
    async with cluster(hosts=3) as hosts:
        home = hosts.home
        (home.folder / "hosts.yaml").write_text(inventory(hosts, 1500))
        (home.folder / "apart.yaml").write_text(TOPOLOGY)
        words = ("demo", "apart.yaml", "--inventory", "hosts.yaml", "--tensor-mib", "1", "--buckets", "4", "--json")
        done = await mrcfabric(home, *words, "--nodes-per-process", "4")
        assert done.code == 0, done.out + done.err
        found = json.loads(done.out)
        [training] = found["programs"]
        assert (found["verdict"], training["done"], training["bytes_wrong"]) == ("held", True, 0)
        assert found["totals"]["bytes_verified"] == training["steps"] * 4 * MIB > 0
        assert (found["fidelity"]["late_share"], found["fidelity"]["host_drops"]) == (0, 0)
        await eventually(lambda: not ours([*hosts]), DEADLINE_S)
        assert not held([*hosts, home])


@pytest.mark.long(100)
async def test_a_host_that_is_killed_takes_its_nodes_along_and_a_second_launch_works_at_once() -> None:
    async with cluster(hosts=3, family=6) as hosts:
        home, first, third = hosts.home, hosts[0], hosts[2]
        (home.folder / "hosts.yaml").write_text(inventory(hosts, 1500))
        up = ("up", "apart.yaml", "--detach", "--inventory", "hosts.yaml", "--nodes-per-process", "2")
        (home.folder / "apart.yaml").write_text(TOPOLOGY)
        (await mrcfabric(home, *up)).well()
        said = (await mrcfabric(home, "status")).well()
        for host, nodes in zip(hosts, (6, 2, 4), strict=True):
            assert f"host      {host.name} at {host.address}: {nodes} of {nodes} daemons run" in said
        assert "12 of 12 daemons run in 8 processes" in said
        (await mrcfabric(home, "fault", "add", "link_down", LINK)).well()
        # A fault that has not begun would be called off, not healed.
        await eventually_true(lambda: in_force(home, f"f1  link_down {LINK}"), DEADLINE_S)
        assert "f1 healed" in (await mrcfabric(home, "fault", "clear", "--all")).well()
        assert " ready" in (await mrcfabric(home, "logs", "p1-t1-1")).well()

        # A file goes from a NIC of one host to one of another, and is nowhere else afterwards.
        content = os.urandom(FILE_BYTES)
        (home.folder / "payload").write_bytes(content)
        words = ("send", "payload", "--from", "h000", "--to", "h003", "--out", "arrived", "--json")
        sent = json.loads((await mrcfabric(home, *words)).well())
        assert (sent["same"], sent["bytes"], sent["sha256"]) == (True, FILE_BYTES, hashlib.sha256(content).hexdigest())
        assert (home.folder / "arrived").read_bytes() == content
        left = [path for host in hosts for path in host.folder.rglob("*") if path.is_file()]
        assert left
        assert not [path for path in left if content[:64] in path.read_bytes()]

        # A pair of NICs works. A login that ends harms nobody, and a cable that is cut takes time and nothing else.
        working = await begun(home)
        for pid in logins(hosts[1]):
            os.kill(pid, signal.SIGKILL)
        await third.cut()
        await eventually_true(lambda: stalled(home), DEADLINE_S)
        await third.mend()
        assert json.loads((await working).well()) == {**RIGHT, "down": [], "planes": ["p0", "p1"]}

        # It works again, and all of one plane is gone at once.
        working = await begun(home)
        await third.kill()
        assert json.loads((await working).well()) == {**RIGHT, "down": [*PLANE], "planes": ["p0"]}
        said = (await mrcfabric(home, "status")).well()
        assert "8 of 12 daemons run" in said
        assert "host      h3 at fd4d:5243::3: 0 of 4 daemons run" in said
        assert all(f"DIED      {node}: SIGKILL: host h3 is lost: " in said for node in PLANE)
        lost = await mrcfabric(home, "logs", "p1-t1-1")
        assert (lost.code, "host h3 is lost" in lost.err, " ready" in lost.out) == (0, True, True)

        await taken_back(home, third)
        (await mrcfabric(home, "down")).well()
        assert not ours([first, hosts[1]])
        assert not held([*hosts, home])
        assert " ready" in (await mrcfabric(home, "logs", "h003")).well()

        # The next launch has the host again; another program's port is told by name.
        with third.network(), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as stranger:
            stranger.bind((third.address, 10_050))
            refused = await mrcfabric(home, *up)
            assert (refused.code, refused.out) == (2, "")
            assert refused.err.startswith("mrcfabric: host h3: ports 10048..10071: port 10050 is in use by ")
            assert refused.err.endswith(" (name a block that is free on every host with --port-base)\n")
        (await mrcfabric(home, *up)).well()
        (await mrcfabric(home, "down")).well()
        await eventually(lambda: not ours([*hosts]), DEADLINE_S)
        assert not held([*hosts, home])
