"""Programs that are children of this process."""

import os
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.engine import Listening
from orchestrator.hosts.engines.local import LocalEngine, LocalProgram, how_it_ended
from orchestrator.hosts.placement.inventory import Host, Ssh
from orchestrator.process.launcher import ProcessFailedError
from tests.support import namespaces
from tests.support.launches import DEADLINE_S, ends, facts, launch, say
from tests.support.wait import eventually

LOOPBACK = "127.0.0.1"
ENGINE = LocalEngine()


def host(folder: Path) -> Host:
    return Host("here", LOOPBACK, LOOPBACK, Ssh(LOOPBACK), run_dir=str(folder))


async def started(folder: Path, **message: object) -> LocalProgram:
    return await ENGINE.start(host(folder), launch(LOOPBACK, **message))  # type: ignore[arg-type]


def test_ends_have_names() -> None:
    assert how_it_ended(0, "done") == "exit code 0"
    assert how_it_ended(3, "it broke") == "exit code 3: it broke"
    assert how_it_ended(3, "") == "exit code 3"
    assert how_it_ended(-9, "it broke") == "SIGKILL"


@pytest.mark.integration
async def test_a_program_is_started_in_its_folder_with_its_files_and_stopped(tmp_path: Path) -> None:
    heard: list[str] = []
    told = launch(LOOPBACK, files={"a/b": b"carried"}, on_line=heard.append, read=["a/b"])
    running = await ENGINE.start(host(tmp_path / "run"), told)
    known = await facts(running)
    assert known["folder"] == str(tmp_path / "run")
    assert known["files"] == {"a/b": "carried"}
    assert known["launch"]["secret"] not in known["command"]
    assert (tmp_path / "run/a/b").stat().st_mode & 0o777 == 0o600
    await say(running, "log of interest")
    await eventually(lambda: heard == ["launched", "of interest"], DEADLINE_S)
    assert not running.ended.done()
    await running.stop()
    await running.stop()
    assert running.ended.result() == "SIGTERM"


@pytest.mark.integration
async def test_ends_are_told_apart(tmp_path: Path) -> None:
    running = await started(tmp_path)
    await say(running, "exit 3")
    assert await ends(running) == "exit code 3: launched"
    await running.stop()
    running = await started(tmp_path)
    os.kill(running.told["pid"], 9)
    assert await ends(running) == "SIGKILL"
    await running.stop()


@pytest.mark.integration
async def test_nothing_is_left_of_a_program_with_children_that_does_not_want_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.hosts.engines.local.STOP_WALL_S", 0.1)
    running = await started(tmp_path, stubborn=True, family=True)
    family = [running.told["pid"], *namespaces.children(running.told["pid"])]
    assert len(family) == 2
    await running.stop()
    assert running.ended.result() == "SIGKILL"
    # The child has become another's, who reaps it in his own time.
    await eventually(lambda: not [pid for pid in namespaces.living(family) if not _dead(pid)], DEADLINE_S)


@pytest.mark.integration
async def test_what_keeps_a_program_from_running_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^host here: port: is taken \(take another\)$"):
        await started(tmp_path, refuse={"where": "port", "what": "is taken", "hint": "take another"})
    with pytest.raises(ProcessFailedError, match="ended before it could be called: exit code 4: it is over"):
        await started(tmp_path, exit=4)
    with pytest.raises(ProcessFailedError, match="has not said"):
        await started(tmp_path, silent=True, ready_wall_s=0.2)
    port = Listening("udp", "192.0.2.1", 40_000)
    with pytest.raises(ConfigError, match=r"host here: has no address 192\.0\.2\.1"):
        await ENGINE.start(host(tmp_path), launch(LOOPBACK, ports=(port,)))


def _dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
