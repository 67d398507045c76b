"""A fabric over the nodes of a real Slurm: from a batch script, and from a machine that is none of them.

One cluster for all tests here, the last of which ends a host of it.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from orchestrator.process import run_folder
from tests.integration.test_over_ssh import DEADLINE_S, PLANE, RIGHT, RULES, TOPOLOGY, begun, held, report
from tests.support.cluster import Cluster, Host, cluster
from tests.support.namespaces import Finished
from tests.support.slurm import Slurm, slurm
from tests.support.wait import eventually, eventually_true

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

SCRIPT = Path(__file__).parents[2] / "deploy/slurm/mrcfabric.sbatch"
SCENARIO = """\
name: apart
fabric: {{planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2, mtu_bytes: 1024, evs_per_qp: 16,
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
SLURMS = ("sshd", "munged", "slurmd", "slurmctld")


class Site:
    """The hosts, their Slurm, and commands given on `home`, where nobody has a share."""

    def __init__(self, hosts: Cluster, jobs: Slurm) -> None:
        self.hosts = hosts
        self.jobs = jobs
        self.home = hosts.home
        self.here = {
            "TMPDIR": str(hosts.folder),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **jobs.environment,
        }

    async def mrcfabric(self, *words: str, job: str = "") -> Finished:
        """One command, within an allocation."""
        within = self.jobs.within(job) if job else {}
        return await self.home.run([sys.executable, "-m", "orchestrator.cli", *words], {**self.here, **within})

    async def batch(self, *words: str) -> str:
        """Submit the script that we offer; the number of the job."""
        return (await self.home.run(["sbatch", "--parsable", str(SCRIPT), *words], self.here)).well().strip()

    async def is_over(self, job: str) -> bool:
        """Whether Slurm is done with it."""
        return not (await self.jobs.run(["squeue", "--noheader", "--jobs", job])).out.strip()

    async def says(self, line: str) -> bool:
        """Whether the status of the fabric has this."""
        return line in (await self.mrcfabric("status")).well()

    def ours(self, hosts: Sequence[Host] = ()) -> list[str]:
        """What runs there that is neither the system's nor Slurm's."""
        found = []
        for host in hosts or self.hosts:
            for pid in host.pids():
                try:
                    name = Path(f"/proc/{pid}/comm").read_text().strip()
                    command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
                except OSError:
                    continue
                if name not in SLURMS:
                    found.append(f"{host.name}: {name}: {command}")
        return found


def inventory(hosts: Cluster) -> str:
    """NICs and plane 0 on the first two hosts, all of plane 1 on the third."""
    places = zip(hosts, ("ranks", "ranks", "plane"), strict=True)
    lines = [f"  {host.name}: {{data: {host.address}, labels: {{for: {place}}}}}" for host, place in places]
    return "\n".join(["hosts:", *lines, RULES])


def pid_of(host: Host, daemon: str) -> int:
    """The process of a daemon there, by the machine's number."""
    titles = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in host.pids()}
    [found] = [pid for pid, title in titles.items() if daemon in title]
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with cluster(hosts=3) as hosts, slurm(hosts) as jobs:
        yield Site(hosts, jobs)


@pytest.mark.long
async def test_a_scenario_from_a_batch_script_is_that_of_virtual_time(site: Site) -> None:
    home = site.home
    (home.folder / "apart.yaml").write_text(SCENARIO.format(length="60rtt"))
    refused = await site.mrcfabric("run", "apart.yaml", "--engine", "slurm")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("mrcfabric: --engine slurm: this is no allocation: SLURM_JOB_ID is not set (salloc ")

    job = await site.batch("apart.yaml", "--trace")
    words = ("run", "apart.yaml", "--trace", "--plain", "--backend", "sim", "--report", "sim")
    (await site.mrcfabric(*words)).well()
    await eventually_true(lambda: site.is_over(job), DEADLINE_S)
    said = (home.folder / f"slurm-{job}.out").read_text()
    assert f"report: out/{job}" in said
    seen, expected = report(home, f"out/{job}"), report(home, "sim")
    assert (seen["verdict"], seen["trace_digest"]) == ("held", expected["trace_digest"])
    assert (seen["fidelity"]["late_share"], seen["fidelity"]["host_drops"]) == (0, 0)
    # Whoever runs there has ended with the step, and the secret stands nowhere.
    await eventually(lambda: not site.ours(), DEADLINE_S)
    assert not held([home])


@pytest.mark.long
async def test_the_end_of_a_job_and_of_an_orchestrator_leaves_nothing(site: Site) -> None:
    home, first, others = site.home, site.hosts[0], site.hosts.hosts[1:]
    (home.folder / "long.yaml").write_text(SCENARIO.format(length="100000rtt"))
    (home.folder / "apart.yaml").write_text(TOPOLOGY)
    alone = await site.jobs.allocate("--nodelist=h1")
    plan = (await site.mrcfabric("plan", "apart.yaml", "--json", "--engine", "slurm", job=alone)).well()
    assert [(one["name"], one["data"]) for one in json.loads(plan)["placement"]["hosts"]] == [("h1", first.address)]
    (await site.mrcfabric("up", "apart.yaml", "--detach", "--engine", "slurm", "--lease", "5s", job=alone)).well()
    said = (await site.mrcfabric("status")).well()
    assert f"host      h1 at {first.address}: 12 of 12 daemons run" in said
    pid = run_folder.holder_pid(home.folder / "out/apart")
    (await home.run(["kill", "-KILL", str(pid)])).well()

    job = (await home.run(["sbatch", "--parsable", "--nodes=2", str(SCRIPT), "long.yaml"], site.here)).well().strip()
    try:
        await eventually(lambda: all(any("nicd" in one for one in site.ours([host])) for host in others), DEADLINE_S)
    except AssertionError as error:
        told = home.folder / f"slurm-{job}.out"
        queued = (await site.jobs.run(["squeue", "--long"])).out
        raise AssertionError(f"{queued}{told.read_text() if told.exists() else ''}{site.ours()}") from error
    await site.jobs.cancel(job)
    await eventually(lambda: not site.ours(others), DEADLINE_S)
    # The first still has its lease.
    await eventually(lambda: not site.ours(), DEADLINE_S)
    await site.jobs.cancel(alone)


@pytest_asyncio.fixture(loop_scope="module")
async def doomed() -> AsyncIterator[Site]:
    """One of its own, whatever comes after."""
    async with cluster(hosts=3) as hosts, slurm(hosts) as jobs:
        yield Site(hosts, jobs)


@pytest.mark.long
async def test_a_host_that_is_killed_takes_its_nodes_along_and_nothing_else(doomed: Site) -> None:
    site, hosts, home, third = doomed, doomed.hosts, doomed.home, doomed.hosts[2]
    (home.folder / "apart.yaml").write_text(TOPOLOGY)
    (home.folder / "wrong.yaml").write_text(inventory(hosts).replace("h2:", "h9:"))
    (home.folder / "hosts.yaml").write_text(inventory(hosts))
    job = await site.jobs.allocate()
    up = ("up", "apart.yaml", "--detach", "--engine", "slurm", "--lease", "6s", "--inventory")
    refused = await site.mrcfabric(*up, "wrong.yaml", job=job)
    assert (refused.code, refused.out) == (2, "")
    hint = "hosts are called as Slurm calls them; it has h1, h2, h3"
    assert refused.err == f"mrcfabric: wrong.yaml: host h9: is no node of job {job} ({hint})\n"

    (await site.mrcfabric(*up, "hosts.yaml", job=job)).well()
    switch = pid_of(third, "p1-t1-1")
    os.kill(switch, signal.SIGKILL)
    await eventually_true(lambda: site.says("DIED      p1-t1-1: SIGKILL"), DEADLINE_S)
    assert await site.says("host      h3 at 10.77.0.3: 3 of 4 daemons run")
    working = await begun(home)
    await third.kill()
    assert json.loads((await working).well()) == {**RIGHT, "down": [*PLANE], "planes": ["p0"]}
    said = (await site.mrcfabric("status")).well()
    assert "host      h3 at 10.77.0.3: 0 of 4 daemons run" in said
    assert all(f"DIED      {node}: SIGKILL: host h3 is lost: " in said for node in PLANE[:3])
    (await site.mrcfabric("down")).well()
    assert not site.ours(hosts.hosts[:2])

    # What Slurm knows is told in one line, and nothing is started.
    await site.jobs.cancel(job)
    refused = await site.mrcfabric("up", "apart.yaml", "--engine", "slurm", job=job)
    assert (refused.code, refused.out) == (2, "")
    assert f"mrcfabric: --engine slurm: job {job} does not run: C" in refused.err
