"""The role: clean to ansible-lint, and run over a real sshd on hosts that carry a fabric afterwards, as the units say.

No systemd runs there: what a unit starts is started by hand, confined as the unit confines it.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import site
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.hosts.engines.payload import our_wheel
from tests.checks.source import ROOT
from tests.support.cluster import SSH_PORT, USER, Cluster, Host, cluster
from tests.support.units import UNITS, Unit
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

DEADLINE_S = 60.0
ANSIBLE = ROOT / "deploy/ansible"
CLUSTER = "lab"
TOPOLOGY = """\
planes: 2
t0_per_plane: 2
t1_per_plane: 2
nics_per_t0: 2
mtu_bytes: 1024
evs_per_qp: 16
reserve_evs_per_qp: 4
"""
WORK = """
import asyncio, json
from pathlib import Path
from orchestrator.fabric import Fabric

async def main():
    async with Fabric.attach(run_dir=Path({folder!r})) as fabric:
        work = await fabric.start("p2p", ranks=["h000", "h003"], figures=dict(messages=4))
        ranks = (await work.finished()).ranks
        verified, wrong = (sum(getattr(rank, key) for rank in ranks) for key in ("bytes_verified", "bytes_wrong"))
        print(json.dumps(dict(verified=verified, wrong=wrong, deaths=len(await fabric.deaths()))))

asyncio.run(main())
"""


def beside(program: str) -> str:
    """A program of the environment that runs the tests."""
    return str(Path(sys.executable).with_name(program))


@pytest.mark.long
def test_it_is_clean_to_ansible_lint(tmp_path: Path) -> None:
    folder = tmp_path / "ansible"
    shutil.copytree(ANSIBLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".ansible"))
    environment = os.environ | {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [beside("ansible-lint"), "--offline", "--nocolor", "--strict"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Profile 'production' was required, and it passed" in done.stderr


def inventory(hosts: Cluster) -> str:
    """Of the operator: two hosts, led from a third machine."""
    lines = ["hosts:"]
    for host in hosts:
        ssh = f"{{port: {SSH_PORT}, user: {USER}, key: {hosts.user_key}, known_hosts: {hosts.known_hosts}}}"
        lines += [f"  {host.name}:", f"    data: '{host.address}'", f"    python: {sys.executable}", f"    ssh: {ssh}"]
    return "\n".join(lines) + "\n"


async def play(home: Host, wheel: Path, *words: str) -> str:
    """Run the playbook as an operator has it, with everything below the home of each host; what it tells."""
    below = f"{home.folder.parent}/{{{{ inventory_hostname }}}}"
    told = {
        "ansible_become": False,
        "mrcfabric_wheel": str(wheel),
        "mrcfabric_cluster": CLUSTER,
        "mrcfabric_service_manager": "none",
        "mrcfabric_user": USER,
        "mrcfabric_user_made": False,
        "mrcfabric_pip_arguments": ["--no-deps", "--no-index"],
        "mrcfabric_prefix": f"{below}/opt",
        "mrcfabric_config_dir": f"{below}/etc",
        "mrcfabric_unit_dir": f"{below}/units",
        "mrcfabric_sysctl_dir": f"{below}/sysctl",
    }
    environment = {
        "MRCFABRIC_INVENTORY": str(home.folder / "hosts.yaml"),
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_NOCOLOR": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    playbook = [beside("ansible-playbook"), "-i", str(ANSIBLE / "hosts.py"), str(ANSIBLE / "site.yml")]
    return (await home.run([*playbook, "--extra-vars", json.dumps(told), *words], environment)).well()


class Supervised:
    """What a unit starts on a host, and what its supervisor hears."""

    def __init__(self, host: Host, unit: Unit, environment: dict[str, str]) -> None:
        self._host, self._unit = host, unit
        state = host.folder / "state"
        state.mkdir(exist_ok=True)
        self.environment = environment | {
            "STATE_DIRECTORY": str(state),
            "NOTIFY_SOCKET": str(host.folder / "notify"),
            # Of the packages that are not ours; our code is the one that is installed where the unit says.
            "PYTHONPATH": ":".join(site.getsitepackages()),
        }
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.bind(self.environment["NOTIFY_SOCKET"])
        self._notices.setblocking(False)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        words = self._unit.confined(self._unit.command(self.environment))
        pairs = [f"{name}={value}" for name, value in self.environment.items()]
        self._process = await asyncio.create_subprocess_exec(
            *self._host.entering(), "env", *pairs, *words,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(DEADLINE_S):
            while not (await loop.sock_recv(self._notices, 4096)).startswith(b"READY=1"):
                pass

    async def stop(self) -> None:
        """As systemd does: by the unit's own command, or else by a signal."""
        if self._unit.all("ExecStop"):
            (await self._host.run(self._unit.command(self.environment, "ExecStop"))).well()
        else:
            [pid] = [pid for pid in self._host.pids() if b"mrcfabric share service" in _command(pid)]
            os.kill(pid, signal.SIGTERM)
        await self.ended()

    async def ended(self) -> None:
        """Wait until it has ended well."""
        assert self._process is not None
        errors = (await self._process.communicate())[1].decode()
        self._notices.close()
        assert self._process.returncode == 0, errors


def share_of(host: Host) -> Supervised:
    """The share service of a host that the role has prepared."""
    unit = Unit(host.folder / "units/mrcfabric-share@.service", CLUSTER)
    environment = dict(line.split("=", 1) for line in Path(unit.one("EnvironmentFile")).read_text().splitlines())
    # systemd hands the key over in a folder of the unit's own.
    name, _, key = unit.one("LoadCredential").partition(":")
    handed = host.folder / "credentials"
    handed.mkdir()
    shutil.copy(key, handed / name)
    return Supervised(host, unit, environment | {"CREDENTIALS_DIRECTORY": str(handed)})


def fabric_of(home: Host) -> Supervised:
    """The fabric of that name, led from a machine where mrcfabric is what the tests run."""
    path = home.folder / "mrcfabric-fabric@.service"
    text = (UNITS / path.name).read_text().replace("/opt/mrcfabric/", f"{sys.prefix}/")
    path.write_text(text.replace("/etc/mrcfabric/%i", str(home.folder)))
    return Supervised(home, Unit(path, CLUSTER), {"MRCFABRIC_FABRIC_OPTIONS": "topology.yaml"})


def ours(hosts: list[Host]) -> list[int]:
    """What runs there besides sshd, whose sessions last as long as Ansible keeps its connections."""
    pids = [pid for host in hosts for pid in host.pids() if pid != host.init]
    return [pid for pid in pids if b"mrcfabric" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.long(90)
async def test_hosts_that_it_prepares_carry_a_fabric() -> None:
    async with cluster(hosts=2) as hosts:
        home = hosts.home
        (home.folder / "hosts.yaml").write_text(inventory(hosts))
        (home.folder / "topology.yaml").write_text(TOPOLOGY)
        wheel = our_wheel()
        (home.folder / wheel.name).write_bytes(wheel.content)
        key = home.folder / "cluster.key"
        (await home.run([sys.executable, "-m", "orchestrator.cli", "share", "--new-key", str(key)])).well()
        first = await play(home, home.folder / wheel.name)
        for host in hosts:
            assert re.search(rf"^{host.name} .* changed=[1-9]\d* .* failed=0", first, re.MULTILINE), first
            assert (host.folder / f"etc/share-{CLUSTER}.key").stat().st_mode & 0o777 == 0o600
        # What has been done is not done again.
        second = await play(home, home.folder / wheel.name, "--limit", hosts[0].name)
        assert re.search(rf"^{hosts[0].name} .* changed=0 .* failed=0", second, re.MULTILINE), second
        assert key.read_text().strip() not in first
        shares = [share_of(host) for host in hosts]
        await asyncio.gather(*(share.start() for share in shares))
        fabric = fabric_of(home)
        await fabric.start()
        script = WORK.format(folder=f"{fabric.environment['STATE_DIRECTORY']}/run")
        figures = json.loads((await home.run([sys.executable, "-c", script])).well())
        assert figures["verified"] > 0
        assert (figures["wrong"], figures["deaths"]) == (0, 0)
        for one in (fabric, *shares):
            await one.stop()
        await eventually(lambda: not ours([*hosts, home]), DEADLINE_S)
