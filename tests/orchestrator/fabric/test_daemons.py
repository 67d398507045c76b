"""The daemons of a fabric: one that cannot start, and those that share a process."""

import asyncio
import os
import signal
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.hosts.placement.layout import port_count
from orchestrator.hosts.placement.site import Sites
from orchestrator.process import answer_wait, ports
from orchestrator.process.launcher import Child, Launcher, ProcessFailedError
from orchestrator.process.ports import PortBlock
from tests.orchestrator.running import (
    DEADLINE_S,
    MESSAGE_BYTES,
    SMALL,
    T0,
    connect,
    idle_totals,
    pids_of,
)
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


async def test_a_daemon_that_cannot_start_is_one_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = ports.allocate(port_count(SMALL, Sites()))
    base = block.base
    with closing(block), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rival:
        rival.bind(("127.0.0.1", base))
        monkeypatch.setattr(ports, "allocate", lambda size, base_asked: PortBlock(base, size))
        with pytest.raises(ConfigError, match=rf"did not start: .*UDP 127\.0\.0\.1:{base}: cannot bind"):
            async with Fabric.launch(SMALL, tmp_path / "small"):
                pass
    assert {path.name for path in (tmp_path / "small").iterdir()} == {"lock", "logs"}


async def test_switches_packed_by_plane_work_and_die_alone(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small", pack="plane") as fabric:
        assert len(set(pids_of(fabric))) == 2 + 2 + 1
        write = await connect(fabric)
        await fabric.command("h000", "post_write", {**write, "wr_id": 1})
        assert (await idle_totals(fabric))["bytes_placed"] == MESSAGE_BYTES
        await fabric.inject(once("switch_crash", T0, at_ns=fabric.soon_ns()))
        await eventually(lambda: not fabric.alive(T0), DEADLINE_S)
        assert [node for node in SMALL.node_names() if not fabric.alive(node)] == [T0]


async def test_a_daemon_that_is_stopped_for_a_while_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_wait, "SILENT_WALL_S", 0.5)
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        child = fabric.daemons.member(T0).child
        assert child is not None
        os.kill(child.pid, signal.SIGSTOP)
        asked = asyncio.create_task(fabric.counters())
        # Four times as long as a daemon that could answer would be given.
        await asyncio.wait([asked], timeout=2.0)
        assert not asked.done()
        os.kill(child.pid, signal.SIGCONT)
        assert set(await asked) == set(SMALL.node_names())


def without_log(error: ProcessFailedError) -> str:
    """What it says, without the log of the process: one that was killed late may have written something.

    A log that is named is there and says something: an empty one goes with the folder.
    """
    text, _, log = str(error).partition("; its log: ")
    assert not log or Path(log).read_text()
    return text


async def test_the_first_daemon_killed_while_it_is_born_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn = Launcher.spawn
    killed: list[str] = []

    async def spawned_and_killed(self: Launcher, name: str, *others: Any, **more: Any) -> Child:
        child = await spawn(self, name, *others, **more)
        if not killed:
            killed.append(name)
            os.kill(child.pid, signal.SIGKILL)
        return child

    monkeypatch.setattr(Launcher, "spawn", spawned_and_killed)
    with pytest.raises(ProcessFailedError) as caught:
        async with Fabric.launch(SMALL, tmp_path / "small"):
            pass
    assert killed == ["h000"]
    assert without_log(caught.value) == "h000 died at start (SIGKILL)"


async def test_a_shared_process_that_is_killed_again_and_again_names_no_log_that_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn = Launcher.spawn

    async def spawned_and_killed(self: Launcher, *words: Any, **more: Any) -> Child:
        child = await spawn(self, *words, **more)
        os.kill(child.pid, signal.SIGKILL)
        await child.ended
        return child

    monkeypatch.setattr(Launcher, "spawn", spawned_and_killed)
    with pytest.raises(ProcessFailedError) as caught:
        async with Fabric.launch(SMALL, tmp_path / "small", pack="plane"):
            pass
    assert without_log(caught.value).endswith(" died at start")
