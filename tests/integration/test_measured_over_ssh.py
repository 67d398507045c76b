"""What is measured between real hosts: ways of uneven width, clocks that differ, a network that loses datagrams.

One host has an MTU of 1500 in a network of 9000; one counts its monotonic clock from elsewhere; and one datagram in six
between the orchestrator and the daemons is lost while a capture and a trace ask them.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.topology_file import read
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.packet import parse
from mrcfabric.wire.pcapng import captured
from orchestrator.hosts.build import placed, sites_of
from orchestrator.hosts.placement.layout import Layout
from tests.integration.test_over_ssh import TOPOLOGY, inventory, mrcfabric, ours
from tests.support import carried
from tests.support.cluster import Cluster, Host, cluster
from tests.support.packages import program
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

DEADLINE_S = 60.0
AHEAD_S = 86_400
LOSS = "0.16"
PROOF = """
import asyncio, json, signal, sys
from pathlib import Path
from orchestrator.fabric import Fabric
from mrcfabric.errors import RefusedError

ASK = [sys.executable, "-m", "orchestrator.cli"]

async def begun(*words):
    return await asyncio.create_subprocess_exec(*ASK, *words, stdout=-1, stderr=-1)

async def is_followed(fabric, node):
    try:
        await fabric.call(node, "witness", {"id": "x", "choice": {"every": 0}})
    except RefusedError as refused:
        return "followed already" in str(refused)

async def main():
    capture = await begun("capture", "h000>*", "--kind", "data", "--clock", "wall", "--snap", "0", "-w", "x.pcapng")
    trace = await begun("trace", "--share", "5%", "--count", "6", "--for", "100s", "--json")
    async with Fabric.attach("apart") as fabric:
        while not (Path("x.pcapng").exists() and Path("x.pcapng").stat().st_size):
            await asyncio.sleep(0.02)
        for node in fabric.topology.node_names():
            while not await is_followed(fabric, node):
                await asyncio.sleep(0.02)
        work = await fabric.start("p2p", ranks=["h000", "h003"], figures=dict(messages=1))
        ranks = (await work.finished()).ranks
        journeys, _ = await trace.communicate()
        capture.send_signal(signal.SIGINT)
        _, said = await capture.communicate()
        verified, wrong = (sum(getattr(rank, key) for rank in ranks) for key in ("bytes_verified", "bytes_wrong"))
        totals, fidelity = await fabric.totals(), await fabric.fidelity()
        print(json.dumps(dict(
            verified=verified, wrong=wrong, codes=[trace.returncode, capture.returncode], said=said.decode(),
            journeys=[json.loads(line) for line in journeys.splitlines()], packets=totals["data_packets"],
            valid=fidelity["valid"],
        )))

asyncio.run(main())
"""


async def lossy(hosts: Cluster, port_base: int) -> None:
    """From now on one in six of the datagrams is lost that daemons and the orchestrator send each other."""
    home = hosts.home
    topology = read(home.folder / "apart.yaml", []).topology
    sites = sites_of(placed(topology, home.folder / "hosts.yaml"))
    layout = Layout(topology, "none", sites, port_base=port_base)
    by_address = {host.address: host for host in hosts}
    rules: dict[Host, list[str]] = {}
    for node in topology.node_names():
        address, port = layout.control_address(node)
        rules.setdefault(by_address[address], []).append(f"--dport {port}")
        rules.setdefault(home, []).append(f"-s {address} --sport {port}")
    drop = f"-m statistic --mode random --probability {LOSS} -j DROP"
    for host, matches in rules.items():
        for match in matches:
            words = f"-A INPUT -p udp {match} {drop}".split()
            (await host.run([str(program("iptables")), *words])).well()


async def dropped(host: Host) -> int:
    """How many it has lost."""
    lines = (await host.run([str(program("iptables")), "-nvxL", "INPUT"])).well().splitlines()
    return sum(int(line.split()[0]) for line in lines[2:])


def psns_of(file: Path) -> list[int]:
    """PSNs of the data packets in a capture, in its order."""
    with file.open("rb") as stream:
        return [parse(one.packet).get(Bth).psn for one in captured(stream, file.name)]


@pytest.mark.long(40)
async def test_uneven_ways_other_clocks_and_a_network_that_loses() -> None:
    async with cluster(hosts=3, family=4, mtu=9000) as hosts:
        home, (narrow, _, shifted) = hosts.home, list(hosts)
        carried.lay(hosts)
        await shifted.kill()
        shifted.ahead_s = AHEAD_S
        await shifted.boot()
        (await narrow.run(["ip", "link", "set", "eth0", "mtu", "1500"])).well()
        (home.folder / "hosts.yaml").write_text(inventory(hosts, 9000).replace("    mtu: 9000\n", ""))
        (home.folder / "apart.yaml").write_text(TOPOLOGY)

        # A way that frames do not come is refused in one line, and nothing is left.
        up = ("up", "apart.yaml", "--detach", "--inventory")
        refused = await mrcfabric(home, *up, "hosts.yaml", "--set", "mtu_bytes=4096")
        assert (refused.code, refused.out) == (2, "")
        assert "frames take 4,280, and fragments of them are lost (mtu_bytes: 1024 fits)\n" in refused.err
        assert not ours([*hosts])

        (await mrcfabric(home, *up, "hosts.yaml")).well()
        status = json.loads((await mrcfabric(home, "status", "--json")).well())
        rows = {(row["host"], row["peer"]): row for row in status["host_pairs"]}
        assert (rows["h1", "h2"]["path_mtu"], rows["h2", "h3"]["path_mtu"]) == (1500, 9000)
        assert 1500 <= rows["h3", "h1"]["path_mtu"] <= 1504
        # Their wall clocks are one, whatever their other clocks show.
        clock = [sys.executable, "-c", "import time; print(time.monotonic())"]
        counted = [float((await host.run(clock)).well()) for host in (hosts[1], shifted)]
        assert counted[1] - counted[0] > AHEAD_S
        clocks = {pair: row for pair, row in rows.items() if row["clock_offset_s"] is not None}
        assert len(clocks) == 12
        assert all(abs(row["clock_offset_s"]) <= row["clock_error_s"] for row in clocks.values())

        # Every packet is captured once or counted as missed, every journey whole, though one datagram in six is lost.
        await lossy(hosts, status["ports"][0])
        proof: dict[str, Any] = json.loads((await home.run([sys.executable, "-c", PROOF])).well())
        assert (proof["verified"], proof["wrong"], proof["codes"], proof["valid"]) == (1 << 20, 0, [0, 0], True)
        assert all([await dropped(host) for host in (*hosts, home)])
        psns = psns_of(home.folder / "x.pcapng")
        missed = re.search(r"^(\d+) packets came faster", proof["said"], re.MULTILINE)
        assert len(psns) + (int(missed[1]) if missed else 0) == proof["packets"] == 1024, proof["said"]
        assert len(set(psns)) == len(psns)
        assert "did not answer" not in proof["said"]
        assert len(proof["journeys"]) == 6
        assert {len(one["attempts"][0]["way"]["hops"]) for one in proof["journeys"]} == {4}
        comment = (home.folder / "x.pcapng").read_bytes()[:1024]
        assert b"wall time is that of host orchestrator; clocks of the others, which stamp nothing here" in comment

        said = (await mrcfabric(home, "status")).well()
        assert "nodes waiting" in said
        rows = {
            (row["host"], row["peer"]): row
            for row in json.loads((await mrcfabric(home, "status", "--json")).well())["host_pairs"]
        }
        assert sum(row["waited_s"] for row in rows.values()) > 0
        assert {(row["late_frames"], row["host_drops"]) for row in rows.values()} == {(0, 0)}
        (await mrcfabric(home, "down")).well()
        await eventually(lambda: not ours([*hosts]), DEADLINE_S)
