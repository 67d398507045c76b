"""A real Prometheus beside a real fabric: a fault makes series move and alerts fire, healing resolves them."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric
from orchestrator.process import run_folder
from orchestrator.process.launcher import ProcessFailedError
from orchestrator.prometheus import prometheus_server
from orchestrator.prometheus.prometheus_server import prometheus_beside
from orchestrator.prometheus.recording import RECORDS
from orchestrator.prometheus.rule import Pace
from tests.orchestrator.running import (
    DEADLINE_S,
    SMALL,
    SMALL_FLAGS,
    ask,
    fails,
    is_gone,
    processes_of,
)
from tests.support.packages import program
from tests.support.wait import eventually, eventually_blocking

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def installed() -> None:
    """Without a Prometheus nothing here can be asked."""
    program("prometheus")


PACE = Pace(1000)
DILATION = 3000.0
T1, PORT = "p1-t1-1", "h000:0"


class Asked:
    """What a Prometheus answers."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def values(self, expression: str) -> list[float]:
        """The samples of an expression, now."""
        async with self._session.get(f"{self._url}/api/v1/query", params={"query": expression}) as answer:
            body: dict[str, Any] = await answer.json()
        assert body["status"] == "success", body
        return [float(sample["value"][1]) for sample in body["data"]["result"]]

    async def until(self, expression: str, wanted: bool = True) -> None:
        """Wait until it has samples, or has none."""
        async with asyncio.timeout(DEADLINE_S):
            while bool(await self.values(expression)) is not wanted:  # noqa: ASYNC110 - it can only be asked
                await asyncio.sleep(0.1)

    async def fires(self, alert: str, wanted: bool = True) -> None:
        """Wait until an alert is up, or down."""
        await self.until(f'ALERTS{{alertname="{alert}",alertstate="firing"}}', wanted)


async def told(fabric: Fabric, *arguments: str) -> None:
    """A command at a fabric of this process."""
    folder = fabric.folder.path
    await asyncio.to_thread(ask, folder.parent, *arguments, "--run-dir", str(folder))


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[Fabric]:
    """One that leaves the machine some time for Prometheus."""
    async with Fabric.launch(replace(SMALL, dilation=DILATION), tmp_path / "small") as one:
        yield one


@pytest.fixture
async def asked(served: Fabric) -> AsyncIterator[Asked]:
    """A Prometheus that ends with the block; its series stay."""
    async with prometheus_beside(served, PACE) as beside, aiohttp.ClientSession() as session:
        yield Asked(beside.url, session)
        pid = pid_of_the_server(served.folder.path)
    assert is_gone(pid)
    assert (served.folder.prometheus / "data").is_dir()


@pytest.mark.long
async def test_faults_fire_alerts_and_healing_resolves_them(served: Fabric, asked: Asked) -> None:
    await served.start("training", figures={"steps": 10_000, "bucket_bytes": 1 << 16})
    await asked.until(f"count(up == 1) == {SMALL.nodes + 1}")
    for record in (record for records in RECORDS.values() for record in records):
        await asked.until(record.name)
    assert await asked.values("plane:mrc_evs_retired:ratio") == [0, 0]
    assert all(0 < share <= 1.001 for share in await asked.values("plane:mrc_utilisation:max"))
    assert not await asked.values('ALERTS{alertstate="firing",severity="critical"}')
    await told(served, "fault", "add", "switch_crash", T1)
    await told(served, "fault", "add", "nic_port_down", PORT)
    await asked.fires("MrcDaemonGone")
    await asked.fires("MrcEvsRetired")
    await asked.fires("MrcNicPortDown")
    assert await asked.values('mrc_nic_port_up{node="h000",plane="0",role="nic"}') == [0]
    await told(served, "fault", "clear", "--all")
    for alert in ("MrcDaemonGone", "MrcNicPortDown"):
        await asked.fires(alert, wanted=False)
    await asked.fires("MrcEvsRetired", wanted=False)
    assert await asked.values('fabric:mrc_goodput:bits_per_second{fabric="small"} > 0')


def test_beside_a_fabric_of_the_command_line(tmp_path: Path) -> None:
    """Found by both ways of discovery, told of, and gone with a killed agent, whose folder `down` then sweeps."""
    started = ask(tmp_path, "up", *SMALL_FLAGS, "--detach", "--with-prometheus", "--scrape-interval", "1s")
    url = next(line.split()[-1] for line in started.splitlines() if "Prometheus at" in line)
    assert f"  series    Prometheus at {url}" in ask(tmp_path, "status")
    folder = tmp_path / "out" / "small"
    promtool("check", "config", folder / "prometheus" / "prometheus.yml")
    state = run_folder.read_state(folder)
    assert state is not None
    config = tmp_path / "elsewhere.yml"
    for way in (
        f"http_sd_configs: [{{url: '{state['http']}/sd'}}]",
        f"file_sd_configs: [{{files: ['{folder}/targets.json']}}]",
    ):
        config.write_text(f"scrape_configs: [{{job_name: fabric, honor_labels: true, {way}}}]\n")
        found = promtool("check", "service-discovery", "--timeout=1s", config, "fabric")
        assert found.count('"__metrics_path__": "/metrics/') >= SMALL.nodes, found
        assert '"role": "agent"' in found

    pids = [*processes_of(tmp_path), pid_of_the_server(folder)]
    os.kill(pids[0], signal.SIGKILL)
    eventually_blocking(lambda: all(is_gone(pid) for pid in pids) and not run_folder.is_held(folder), DEADLINE_S)
    assert ask(tmp_path, "down") == "swept out/small, whose agent had ended\n"
    assert {path.name for path in folder.iterdir()} == {"events.jsonl", "lock", "logs", "prometheus"}


def promtool(*arguments: str | Path) -> str:
    """What it prints, when it is content."""
    command = [program("promtool"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pid_of_the_server(folder: Path) -> int:
    """The Prometheus whose data lie in a run folder."""
    wanted = f"--storage.tsdb.path={folder / 'prometheus' / 'data'}"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "cmdline").read_text().split("\0"):
                    return int(entry.name)
            except OSError:
                continue
    raise AssertionError(f"no process with {wanted}")


async def test_one_that_fails_is_told_and_the_fabric_goes_on(served: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = served.folder.prometheus
    folder.touch()
    with pytest.raises(ConfigError, match="prometheus: File exists"):
        async with prometheus_beside(served, PACE):
            pass
    folder.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(prometheus_server, "TARGET_FILES", ("*/targets.json",))
        refused = r"Prometheus did not start: exit code \d+: .*not valid for file disc"
        with pytest.raises(ProcessFailedError, match=refused):
            async with prometheus_beside(served, PACE):
                pass
    async with prometheus_beside(served, PACE) as beside:
        assert beside.record() == {"url": beside.url, "ended": None}
        os.kill(pid_of_the_server(served.folder.path), signal.SIGKILL)
        await eventually(
            lambda: any(note["kind"] == "prometheus_ended" for note in served.journal.after(0)), DEADLINE_S
        )
        assert beside.record()["ended"] == "SIGKILL"
    assert all(served.alive(node) for node in SMALL.node_names())


def test_a_machine_without_it_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="no program `prometheus` is installed"):
        prometheus_server.find_program()
    assert "--with-prometheus: no program" in fails(tmp_path, "up", *SMALL_FLAGS, "--with-prometheus")
    assert not (tmp_path / "out").exists()
    assert "nothing scrapes" in fails(tmp_path, "up", *SMALL_FLAGS, "--scrape-interval", "3s")
