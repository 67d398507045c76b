"""Programs on real hosts, started over a real sshd, by code that was carried there."""

import asyncio
import dataclasses
import os
import signal
import sys
from pathlib import Path

import pytest

import orchestrator
from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.engine import Listening
from orchestrator.hosts.engines.login import Patience
from orchestrator.hosts.engines.ssh import SshEngine
from orchestrator.hosts.placement.inventory import Host
from orchestrator.process.launcher import ProcessFailedError
from tests.support import bare
from tests.support import cluster as clusters
from tests.support.cluster import Cluster, cluster
from tests.support.launches import DEADLINE_S, SECRET, described, ends, facts, launch, say
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

PATIENT = Patience(connect_wall_s=DEADLINE_S)
# Most of what is tried here is the same whatever the code is; this one is carried and compiled in no time.
ENGINE = SshEngine(wheel=bare.application(needs=()), patience=PATIENT)


def inventory(hosts: Cluster) -> list[Host]:
    """The hosts as an inventory has them; their Python is the one of the tests, with all packages."""
    return [described(hosts, host, sys.executable) for host in hosts]


def content(path: str) -> bytes:
    """Of a process's file; b"" when it has ended since it was listed."""
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def launched(host: clusters.Host) -> list[int]:
    """The program's processes there."""
    return [pid for pid in host.pids() if b"launched.py" in content(f"/proc/{pid}/cmdline")]


async def quiet(host: clusters.Host) -> None:
    """Wait until nothing but sshd runs there."""
    await eventually(lambda: host.pids() == [host.init], DEADLINE_S)


async def test_our_own_code_runs_on_every_host_and_ends_with_all_of_it() -> None:
    engine = SshEngine(patience=PATIENT)
    async with cluster(hosts=2, family=6) as hosts:
        with hosts.home.network():
            every = inventory(hosts)
            running = await asyncio.gather(*(engine.start(host, launch(host.data)) for host in every))
            for host, program in zip(hosts, running, strict=True):
                known = await facts(program)
                assert known["code"].startswith(f"{host.folder}/mrcfabric/code/")
                assert content(known["code"]) == content(orchestrator.__file__)
            await asyncio.gather(*(program.stop() for program in running))
            assert [program.ended.result() for program in running] == ["SIGTERM", "SIGTERM"]
        for host in hosts:
            await quiet(host)


@pytest.mark.long
async def test_a_program_stands_in_its_folder_with_its_files_and_its_log_is_heard() -> None:
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            [host] = inventory(hosts)
            heard: list[str] = []
            running = await ENGINE.start(
                host, launch(host.data, on_line=heard.append, files={"x/y": b"z"}, read=["x/y"])
            )
            known = await facts(running)
            assert known["folder"] == f"{hosts[0].folder}/mrcfabric"
            assert known["files"] == {"x/y": "z"}
            await say(running, "log of interest")
            await eventually(lambda: heard == ["launched", "of interest"], DEADLINE_S)
            await running.stop()
            await running.stop()


@pytest.mark.long
async def test_the_secret_travels_on_standard_input_alone() -> None:
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            [host] = inventory(hosts)
            heard: list[str] = []
            running = await ENGINE.start(host, launch(host.data, on_line=heard.append))
            known = await facts(running)
            assert known["launch"]["secret"] == SECRET
            assert SECRET not in known["command"]
            assert SECRET not in str(known["environment"])
            for pid in hosts[0].pids():
                for name in ("cmdline", "environ"):
                    assert SECRET.encode() not in content(f"/proc/{pid}/{name}")
            await running.stop()
        files = [path for path in hosts[0].folder.rglob("*") if path.is_file()]
        assert files
        assert not [path for path in files if SECRET.encode() in path.read_bytes()]
        assert SECRET not in "".join((*heard, *hosts[0].log))


@pytest.mark.long
async def test_a_second_launch_copies_nothing() -> None:
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            [host] = inventory(hosts)
            seen = []
            for _launch in range(2):
                running = await ENGINE.start(host, launch(host.data))
                await running.stop()
                code = hosts[0].folder / "mrcfabric/code"
                seen.append({(str(path), path.stat().st_mtime_ns) for path in code.rglob("*.py")})
            assert seen[0] == seen[1]


@pytest.mark.long
async def test_a_bare_python_runs_it_out_of_a_wheelhouse(tmp_path: Path) -> None:
    bare.dependency(tmp_path)
    engine = SshEngine(wheelhouse=tmp_path, wheel=bare.application(), patience=PATIENT)
    async with cluster(hosts=1) as hosts:
        python = await asyncio.to_thread(bare.interpreter, hosts[0].folder / "python", with_pip=False)
        with hosts.home.network():
            host = described(hosts, hosts[0], python)
            running = await engine.start(host, launch(host.data))
            known = await facts(running)
            assert (known["python"], known["version"], known["dependency"]) == (python, "0.1.0", "1.4")
            await running.stop()


@pytest.mark.long
async def test_ends_are_told_apart() -> None:
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            [host] = inventory(hosts)
            running = await ENGINE.start(host, launch(host.data))
            await say(running, "exit 3")
            assert await ends(running) == "exit code 3: launched"
            await running.stop()
            running = await ENGINE.start(host, launch(host.data))
            [victim] = launched(hosts[0])
            os.kill(victim, signal.SIGKILL)
            assert await ends(running) == "SIGKILL"
            await running.stop()
            running = await ENGINE.start(host, launch(host.data))
            await hosts[0].kill()
            assert (await ends(running)).startswith("connection lost: ")
            await running.stop()


@pytest.mark.long
async def test_after_a_cut_cable_what_was_left_there_is_ended() -> None:
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            [host] = inventory(hosts)
            running = await ENGINE.start(host, launch(host.data, family=True))
            await hosts[0].cut()
            assert (await ends(running)).startswith("connection lost: ")
            assert launched(hosts[0])
            await hosts[0].mend()
            await running.stop()
        left = [content(f"/proc/{pid}/comm") for pid in hosts[0].pids()]
        assert not [name for name in left if name and not name.startswith((b"sshd", b"sleep"))]


@pytest.mark.long
async def test_a_program_that_does_not_want_to_end_is_killed_with_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.hosts.engines.ssh.STOP_WALL_S", 0.3)
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            [host] = inventory(hosts)
            running = await ENGINE.start(host, launch(host.data, stubborn=True, family=True))
            await running.stop()
            assert running.ended.result() == "SIGKILL"
        await quiet(hosts[0])


async def test_what_keeps_a_program_from_running_is_said_and_nothing_is_left() -> None:
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            [host] = inventory(hosts)
            with pytest.raises(ConfigError, match=r"^host h1: port: is taken \(take another\)$"):
                await ENGINE.start(
                    host, launch(host.data, refuse={"where": "port", "what": "is taken", "hint": "take another"})
                )
            with pytest.raises(ProcessFailedError, match="ended before it could be called: exit code 4: it is over"):
                await ENGINE.start(host, launch(host.data, exit=4))
            with pytest.raises(ProcessFailedError, match="has not said within"):
                await ENGINE.start(host, launch(host.data, silent=True, ready_wall_s=0.5))
            with pytest.raises(ConfigError, match=r"host h1: TCP port 22 of 10\.77\.0\.1 is taken"):
                await ENGINE.start(host, launch(host.data, ports=(Listening("tcp", host.data, 22),)))
            with pytest.raises(ConfigError, match="host h1: has no Python"):
                await ENGINE.start(dataclasses.replace(host, python="python9"), launch(host.data))
            with pytest.raises(ConfigError, match="host h1: root cannot write into /proc/none"):
                await ENGINE.start(dataclasses.replace(host, run_dir="/proc/none"), launch(host.data))
        await quiet(hosts[0])


@pytest.mark.long
async def test_an_installation_of_another_version_is_told() -> None:
    async with cluster(hosts=1) as hosts:
        with hosts.home.network():
            [host] = inventory(hosts)
            engine = SshEngine(code="installed", wheel=bare.application("9.9.9"), patience=PATIENT)
            with pytest.raises(ConfigError, match=r"has mrcfabric [0-9.]+, and this is 9\.9\.9"):
                await engine.start(host, launch(host.data))
            running = await SshEngine(code="installed", patience=PATIENT).start(host, launch(host.data))
            assert not (await facts(running))["code"].startswith(str(hosts[0].folder))
            await running.stop()
        await quiet(hosts[0])
