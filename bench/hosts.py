"""From the command to 200 daemons ready over four hosts, and what they cost at rest: `mrcfabric up --inventory`.

The hosts are those of the tests: namespaces of this machine joined by a bridge, each with a real sshd, so that all four
and the orchestrator's share its cores; apart they are faster. Needs root and an sshd. The first start finds nothing of
ours on the hosts and copies the code there; the later ones find it.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterable
from typing import Any

from bench.measure import Figure, rounded
from bench.processes import cpu_s
from tests.support.cluster import SSH_PORT, USER, Cluster, cluster

HOSTS = 4
STARTS = 4
"""The first one included."""
REST_WALL_S = 5.0
SIZE = ("--planes", "8", "--t0", "8", "--t1", "8", "--nics-per-t0", "9", "--set", "mtu_bytes=1024")
DAEMONS = 200


async def _mrcfabric(hosts: Cluster, *words: str) -> float:
    """Run the command on the orchestrator's host; the seconds it took. Raises RuntimeError when it fails."""
    started_s = time.monotonic()
    done = await hosts.home.run([sys.executable, "-m", "orchestrator.cli", *words], {"PYTHONPATH": os.getcwd()})
    if done.code:
        raise RuntimeError(f"mrcfabric {words[0]}: {(done.err.strip() or 'failed').splitlines()[-1]}")
    return time.monotonic() - started_s


def _inventory(hosts: Cluster) -> str:
    login = f"{{port: {SSH_PORT}, user: {USER}, key: {hosts.user_key}, known_hosts: {hosts.known_hosts}}}"
    lines = [f"  {host.name}: {{data: {host.address}, python: {sys.executable}, ssh: {login}}}\n" for host in hosts]
    return "hosts:\n" + "".join(lines)


async def _cores_used(pids: Iterable[int]) -> float:
    before_s, started_s = sum(map(cpu_s, pids)), time.monotonic()
    await asyncio.sleep(REST_WALL_S)
    return (sum(map(cpu_s, pids)) - before_s) / (time.monotonic() - started_s)


async def _measured() -> tuple[list[float], list[float], float]:
    """Seconds of all starts, of all ends, and the cores in use at rest."""
    async with cluster(hosts=HOSTS) as hosts:
        (hosts.home.folder / "hosts.yaml").write_text(_inventory(hosts))
        starts, ends, rest = [], [], []
        for _ in range(STARTS):
            starts.append(await _mrcfabric(hosts, "up", "--inventory", "hosts.yaml", "--detach", *SIZE))
            rest.append(await _cores_used([pid for host in (*hosts, hosts.home) for pid in host.pids()]))
            ends.append(await _mrcfabric(hosts, "down"))
        return starts, ends, statistics.median(rest)


def run() -> dict[str, Any]:
    """Section `hosts`."""
    starts, ends, rest = asyncio.run(_measured())
    figures = {"seconds": Figure(tuple(starts[1:])), "down_seconds": Figure(tuple(ends))}
    return {
        "daemons": DAEMONS,
        "first_seconds": rounded(starts[0]),
        **{name: rounded(figure.median) for name, figure in figures.items()},
        "cores_at_rest": rounded(rest),
        "detail": {name: figure.record() for name, figure in figures.items()},
    }
