"""The hosts under a fabric: one of them by itself, and what becomes of the others when one cannot begin or ends."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric
from orchestrator.hosts.ground import Ground, Host
from orchestrator.hosts.site import LEADER, Site, Sites
from orchestrator.launcher import ProcessFailedError
from tests.orchestrator.running import DEADLINE_S
from tests.orchestrator.running import SMALL as TINY
from tests.support.shares import Agent, Machine, everything, nothing_left, spread

LEASE_S = 10.0
HOSTS = 3


@pytest.mark.integration
async def test_a_fabric_on_one_host_has_its_own_share(fabric: Fabric) -> None:
    share = fabric.ground.share(LEADER)
    assert share.folder == fabric.folder.path
    assert set(share.descriptors.doorbells) == set(TINY.node_names())
    assert fabric.ground.whole


async def test_an_engine_that_fails_at_the_end_is_told_when_all_others_have_ended() -> None:
    stopped: list[str] = []

    class Engine:
        address = ("127.0.0.1", 1)

        def __init__(self, name: str) -> None:
            self.name = name
            self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def stop(self) -> None:
            await asyncio.sleep(0)
            stopped.append(self.name)
            if self.name == "bad":
                raise ProcessFailedError("host bad cannot be reached")

    async def start(_launch: dict[str, Any]) -> Engine:
        raise NotImplementedError

    ground = Ground(Sites((Site("here"), Site("bad"), Site("good"))), [Host(start, "a"), Host(start, "b")])
    ground._running = [Engine("bad"), Engine("good")]
    with pytest.raises(ProcessFailedError, match="host bad cannot be reached"):
        await ground.close()
    assert stopped == ["bad", "good"]
    await ground.close()


@pytest.mark.integration
@pytest.mark.slow
async def test_a_fabric_without_its_own_courier_is_broken(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2, {"p1-t1-0": 1}, LEASE_S)
    async with Fabric.launch(TINY, tmp_path / "vm0", ground=machine.ground) as fabric:
        pids = everything()
        post = machine.ground._post
        assert post is not None
        assert post.child is not None
        os.kill(post.child.pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            assert await fabric.broken == "the courier of host vm0 has ended: SIGKILL"
    assert nothing_left(tmp_path, machine, pids)


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["folder", "engine", "agent"])
async def test_one_host_that_cannot_begin_is_named_and_the_others_are_given_back(tmp_path: Path, trouble: str) -> None:
    async def begin(launch: dict[str, Any]) -> Agent:
        if trouble == "engine":
            raise ConfigError("host vm2", "cannot be reached")
        agent = await machine.start(launch)
        if trouble == "agent":
            agent.process.kill()
        return agent

    machine = Machine(tmp_path, HOSTS, spread(TINY, HOSTS), LEASE_S, {2: begin})
    if trouble == "folder":
        (tmp_path / "vm2" / "small").mkdir(parents=True)
        (tmp_path / "vm2" / "small" / "letters.txt").touch()
    said = {
        "folder": f"host vm2: run folder {tmp_path}/vm2/small.* holds files that are no fabric's",
        "engine": "host vm2.*cannot be reached",
        "agent": "host vm2 is lost: its agent has ended: exit code -9",
    }
    with pytest.raises((ConfigError, ProcessFailedError), match=said[trouble]):
        async with Fabric.launch(TINY, tmp_path / "vm0", ground=machine.ground):
            pass
    assert nothing_left(tmp_path / "vm0", machine, everything())
    assert nothing_left(tmp_path / "vm1", machine, [])
