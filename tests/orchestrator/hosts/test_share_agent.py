"""A share agent as a process: who may talk to it, when it ends, and that nothing is left and nothing given away."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.control_message import Realm
from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER
from orchestrator.hosts.placement.layout import ProcessPlan
from orchestrator.hosts.placement.site import Site
from orchestrator.hosts.remote_share import RemoteShare
from orchestrator.process import run_folder
from orchestrator.process.launcher import Child
from tests.orchestrator.running import DEADLINE_S, SMALL, is_gone
from tests.support.shares import Agent, ended, say, spawned, start, tree
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]
SECRET = bytes(range(100, 132))
LEASE_S = 60.0
SHORT_LEASE_S = 2.0
SETTINGS: dict[str, Any] = {
    "topology": SMALL.to_dict(),
    "pack": "none",
    "cores": [],
    "sites": [["here", "127.0.0.1", "127.0.0.1"], ["there", "127.0.0.1", "127.0.0.1"]],
    "of_node": {"h000": 1},
    "nodes_per_process": 1,
    "alone": [],
    "port_base": 1024,
    "dilation": 0.0,
    "limit_ns": NEVER,
    "again": False,
}
SLEEPER = ProcessPlan("h000", "tests.orchestrator.entries:obey", ("h000",), 1)
STUBBORN = ProcessPlan("h000", "tests.orchestrator.entries:sleep", ("h000",), 1)
"""It has to be killed."""


def launch(folder: Path, epoch: int = 1, lease_s: float = LEASE_S) -> dict[str, Any]:
    return {
        "secret": SECRET.hex(), "fabric": "small", "epoch": epoch, "number": 1, "listen": ["127.0.0.1", 0],
        "run_dir": str(folder), "lease_s": lease_s,
    }  # fmt: skip


@asynccontextmanager
async def share_of(folder: Path, epoch: int = 1, lease_s: float = LEASE_S) -> AsyncIterator[tuple[Agent, RemoteShare]]:
    """A share agent and the leader's end of it, not yet furnished."""
    agent = await start(launch(folder, epoch, lease_s), folder / f"agent-{epoch}.log")
    async with ended([agent]):
        share = RemoteShare(Site("there"), 1, agent.address, Realm(SECRET, "small", epoch), lease_s)
        await share.open()
        try:
            yield agent, share
        finally:
            await share.close()


async def all_gone(pids: list[int]) -> None:
    await eventually(lambda: all(map(is_gone, pids)), DEADLINE_S)


def told_by(folder: Path, pids: list[int], secret: bytes) -> list[Path]:
    """Files below a folder, command lines and environments that hold a secret."""
    files = [Path(f"/proc/{pid}/{name}") for pid in pids for name in ("cmdline", "environ")]
    files += [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if secret in path.read_bytes()]


def hang_up(share: RemoteShare) -> None:
    """As if the leader had been killed: no word of farewell."""
    share._closing = True
    for task in share._keeping:
        task.cancel()


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (json.dumps(launch(Path("x")) | {"listen": ["192.0.2.1", 0]}).encode(), "TCP 192.0.2.1:0"),
        (b"nonsense", "standard input"),
        (b"", "standard input"),
    ],
)
async def test_what_it_cannot_begin_with_is_one_line(tmp_path: Path, line: bytes, where: str) -> None:
    process, said = await say(line, tmp_path / "agent.log")
    assert said["where"] == where
    assert said["what"]
    assert await process.wait() == 2
    assert (tmp_path / "agent.log").read_text() == ""


async def test_a_share_carries_processes_and_gives_nothing_away(tmp_path: Path) -> None:
    died: list[Child] = []
    async with share_of(tmp_path) as (agent, share):
        share.on_death = died.append
        assert (await share.machine())["cores"] >= 1
        await share.furnish(SETTINGS)
        assert share.folder == tmp_path / "small"
        child = await spawned(share, ProcessPlan("h000", "tests.orchestrator.entries:exit_with", ("h000",), 1), 3)
        assert await child.ended == 3
        assert died == [child]
        assert child.how_it_ended() == "exit code 3: leaving with 3"
        sleeper = await spawned(share, STUBBORN, {"secret": SECRET.hex()})

        # Files of the run folder, and no others.
        assert await share.read("logs/h000.log", 8, 5) == (b"with ", 15)
        assert (await share.read("logs/h000.log", 0, -1))[0] == b""
        (tmp_path / "small" / "way-out").symlink_to("/etc/hostname")
        for path in ("secret", "logs/../secret", "../agent-1.log", "/etc/hostname", "way-out", "logs", "verbs"):
            with pytest.raises(ConfigError, match="is none that is handed out"):
                await share.read(path, 0, 100)

        # What strangers and what a mistaken leader say.
        for noise in (b"", os.urandom(4096), b"mrchosts" + bytes(200)):
            _, writer = await asyncio.open_connection(*agent.address)
            writer.write(noise)
            writer.close()
        with pytest.raises(ConfigError) as refused:
            await share.reserve(10, 80)
        assert refused.value.where == "host there: ports 80..89"
        share._stream.send(b"nonsense")  # type: ignore[union-attr]
        assert (await share.machine())["name"]

        # The secret is in the run folder's own file at most, and that is another one.
        pids = tree(agent.pid)
        assert len(pids) >= 3
        assert not told_by(tmp_path, pids, SECRET) + told_by(tmp_path, pids, SECRET.hex().encode())

        assert await share.signal(sleeper, signal.SIGKILL)
        assert await sleeper.ended == -signal.SIGKILL
        assert not await share.signal(sleeper, signal.SIGKILL)
    assert agent.words() == "", "that a fabric ends as it was to is no news"
    await all_gone(pids)
    assert not run_folder.is_held(tmp_path / "small")
    assert sorted(path.name for path in (tmp_path / "small").iterdir()) == ["lock", "logs", "way-out"]


async def test_a_share_without_its_leader_ends_with_its_lease(tmp_path: Path) -> None:
    async with share_of(tmp_path, lease_s=SHORT_LEASE_S) as (agent, share):
        await share.furnish(SETTINGS)
        await spawned(share, SLEEPER, share.descriptors.alive)
        pids = tree(agent.pid)
        hang_up(share)
        assert await agent.ended == "exit code 1"
        await all_gone(pids)
    assert "the leader has not been heard for 2 s" in agent.words()
    assert not run_folder.is_held(tmp_path / "small")


@pytest.mark.long
async def test_a_lease_that_ran_out_while_the_agent_stood_still_is_over(tmp_path: Path) -> None:
    lost: list[str] = []
    async with share_of(tmp_path, lease_s=SHORT_LEASE_S) as (agent, share):
        share.on_lost = lost.append
        await share.furnish(SETTINGS)
        sleeper = await spawned(share, SLEEPER, share.descriptors.alive)
        pids = tree(agent.pid)
        os.kill(agent.pid, signal.SIGSTOP)
        await eventually(lambda: lost, DEADLINE_S)
        assert lost[0].startswith("not heard for ")
        assert "host there is lost: not heard" in sleeper.how_it_ended()
        os.kill(agent.pid, signal.SIGCONT)
        await agent.ended
        await all_gone(pids)


@pytest.mark.parametrize("victim", ["agent", "fork server"])
async def test_nothing_outlives_a_share_that_is_killed(tmp_path: Path, victim: str) -> None:
    async with share_of(tmp_path) as (agent, share):
        await share.furnish(SETTINGS)
        await spawned(share, SLEEPER, share.descriptors.alive)
        pids = tree(agent.pid)
        os.kill(pids[0 if victim == "agent" else 1], signal.SIGKILL)
        await agent.ended
        await all_gone(pids)
        assert ("the fork server has ended" in agent.words()) == (victim != "agent")
        hang_up(share)


@pytest.mark.parametrize("plan", [SLEEPER, STUBBORN], ids=["at once", "slowly"])
async def test_a_share_without_its_relay_ends(tmp_path: Path, plan: ProcessPlan) -> None:
    """The leader, who hears of it, asks for the end too; that changes nothing, however long the agent takes."""
    lost: list[str] = []
    async with share_of(tmp_path) as (agent, share):
        share.on_lost = lost.append
        await share.furnish(SETTINGS | {"port_base": 20_000})
        await share.start_relay()
        sleeper = await spawned(share, plan, share.descriptors.alive)
        pids = tree(agent.pid)
        os.kill(next(child.pid for child in share._children.values() if child is not sleeper), signal.SIGKILL)
        await eventually(lambda: lost, DEADLINE_S)
        assert lost == ["its relay has ended: SIGKILL"]
        assert not sleeper.alive
        assert await agent.ended == "exit code 1"
        await all_gone(pids)
    assert "the relay has ended: SIGKILL" in agent.words()


@pytest.mark.long(13)
async def test_a_later_launch_takes_over_from_a_leader_that_is_gone_and_from_no_other(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        agent, share = await stack.enter_async_context(share_of(tmp_path, epoch=1))
        await share.furnish(SETTINGS)
        await spawned(share, SLEEPER, share.descriptors.alive)
        _, later = await stack.enter_async_context(share_of(tmp_path, epoch=2))
        with pytest.raises(ConfigError, match="a fabric is already running there") as refused:
            await later.furnish(SETTINGS)
        assert refused.value.where == f"host there: run folder {tmp_path / 'small'}"
        assert f"pid {agent.pid}: mrcfabric small share of host 1" in refused.value.what
        pids = tree(agent.pid)
        status = tmp_path / "small" / "share.json"
        share._keeping[1].cancel()  # as if it had just lost its power: nothing is said, nothing closed
        assert json.loads(status.read_text())["heard"]
        await later.furnish(SETTINGS)
        await all_gone(pids)
        assert json.loads(status.read_text())["epoch"] == 2


@pytest.mark.long
async def test_a_share_started_again_ends_the_former_of_its_launch_and_keeps_its_logs(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        agent, share = await stack.enter_async_context(share_of(tmp_path))
        await share.furnish(SETTINGS)
        child = await spawned(share, ProcessPlan("h000", "tests.orchestrator.entries:exit_with", ("h000",), 1), 3)
        assert await child.ended == 3
        pids = tree(agent.pid)
        _, again = await stack.enter_async_context(share_of(tmp_path))
        await again.furnish(SETTINGS | {"again": True})
        await all_gone(pids)
        child = await spawned(again, ProcessPlan("h000", "tests.orchestrator.entries:exit_with", ("h000",), 1), 4)
        assert await child.ended == 4
        assert await again.read("logs/h000.log", 0, 100) == (b"leaving with 3\nleaving with 4\n", 30)
