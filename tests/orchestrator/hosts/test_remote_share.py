"""The leader's end of a share: short cuts of the network go unnoticed, and a share that is lost is lost once."""

import asyncio
import os
import signal
import time
from pathlib import Path

import msgpack
import pytest

from mrcfabric.control_message import Realm
from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.site import Site
from orchestrator.hosts.remote_share import RemoteShare
from orchestrator.process.host_lease import LEASE_DETACHED_S
from orchestrator.process.keyed_stream import HUNG_UP, Endpoint, KeyedStream
from orchestrator.process.launcher import Child, ProcessFailedError
from tests.orchestrator.hosts.test_share_agent import LEASE_S, SECRET, SETTINGS, SLEEPER, launch
from tests.orchestrator.running import DEADLINE_S
from tests.support.shares import Line, ended, spawned, start, tree
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]
REALM = Realm(SECRET, "small", 1)


async def test_a_network_that_comes_back_in_time_loses_nothing(tmp_path: Path) -> None:
    died: list[Child] = []
    lost: list[str] = []
    agent = await start(launch(tmp_path), tmp_path / "agent.log")
    async with ended([agent]):
        line = Line(agent.address)
        await line.mend()
        share = RemoteShare(Site("there"), 1, line.address, REALM, LEASE_S)
        share.on_death, share.on_lost = died.append, lost.append
        await share.open()
        await share.furnish(SETTINGS)
        child = await spawned(share, SLEEPER, share.descriptors.alive)
        other = await spawned(share, SLEEPER, share.descriptors.alive)
        await line.cut()
        os.kill(child.pid, signal.SIGKILL)
        asked = asyncio.ensure_future(share.signal(other, signal.SIGKILL))
        await eventually(lambda: share._stream is None, DEADLINE_S)
        await line.mend()
        assert await asked
        await eventually(lambda: len(died) == 2, DEADLINE_S)
        assert {id(one) for one in died} == {id(child), id(other)}
        # What was asked before the cut, and answered into nowhere, is not done twice.
        pending = asyncio.ensure_future(spawned(share, SLEEPER, share.descriptors.alive))
        await asyncio.sleep(0)  # it is asked, and cannot have been answered
        assert share._answers
        await line.cut()
        await line.mend()
        third = await pending
        assert third.alive
        await eventually(lambda: tree(agent.pid)[2:] == [third.pid], DEADLINE_S)
        await share.close()
        async with asyncio.timeout(DEADLINE_S):
            await agent.ended
        await line.cut()
    assert not lost
    assert agent.words() == ""


async def test_what_is_asked_of_a_lost_share_is_refused_at_once(tmp_path: Path) -> None:
    lost: list[str] = []
    agent = await start(launch(tmp_path), tmp_path / "agent.log")
    async with ended([agent]):
        share = RemoteShare(Site("there"), 1, agent.address, REALM, LEASE_S)
        share.on_lost = lost.append
        await share.open()
        await share.furnish(SETTINGS)
        child = await spawned(share, SLEEPER, share.descriptors.alive)
        os.kill(agent.pid, signal.SIGSTOP)
        asked = asyncio.ensure_future(share.machine())
        await eventually(lambda: share._answers, DEADLINE_S)
        os.kill(agent.pid, signal.SIGKILL)
        share.fail(f"its agent has ended: {await agent.ended}")
        share.fail("and once more")
        for asking in (asked, share.machine(), spawned(share, SLEEPER, share.descriptors.alive)):
            with pytest.raises(ProcessFailedError, match="host there is lost: its agent has ended: exit code -9"):
                await asking
        assert lost == ["its agent has ended: exit code -9"]
        assert child.how_it_ended() == "SIGKILL: host there is lost: its agent has ended: exit code -9"
        began = time.monotonic()
        await share.close()
        await share.close()
        assert time.monotonic() - began < DEADLINE_S


async def test_a_share_out_of_its_engines_sight_is_lost_when_it_has_hung_up_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.hosts.remote_share.DOUBT_S", 0.0)
    lost: list[str] = []
    agent = await start(launch(tmp_path), tmp_path / "agent.log")
    async with ended([agent]):
        share = RemoteShare(Site("there"), 1, agent.address, REALM, LEASE_S)
        share.on_lost = lost.append
        await share.open()
        share.doubt("out of sight")
        assert (await share.machine())["cores"]
        assert (await share.machine())["cores"]
        assert not lost
        os.kill(agent.pid, signal.SIGKILL)
        await eventually(lambda: lost == ["out of sight"], DEADLINE_S)
        await share.close()


async def test_a_share_that_fell_silent_is_lost_when_its_machine_says_that_nobody_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.hosts.remote_share.DOUBT_S", 0.0)
    lost: list[str] = []
    agent = await start(launch(tmp_path), tmp_path / "agent.log")
    async with ended([agent]):
        line = Line(agent.address)
        await line.mend()
        share = RemoteShare(Site("there"), 1, line.address, REALM, LEASE_S)
        share.on_lost = lost.append
        await share.open()
        share.doubt("out of sight")
        assert share._stream is not None
        assert line._server is not None
        line._server.close()
        share._stream.close("it is silent")
        await eventually(lambda: lost == ["out of sight"], DEADLINE_S)
        await share.close()
        await line.cut()
        os.kill(agent.pid, signal.SIGKILL)


async def test_a_share_that_has_hung_up_has_done_so_until_it_is_heard() -> None:
    share = RemoteShare(Site("there"), 1, ("127.0.0.1", 9), REALM, LEASE_S)
    endpoint = Endpoint(REALM, 1, b"share")

    def call() -> KeyedStream:
        return KeyedStream(endpoint, share._ready, share._message, share._lost)

    share._stream = stream = call()
    for one, why, hung_up in (
        (call(), "no answer within 2 s", False),
        (stream, HUNG_UP, True),
        (call(), "no answer within 2 s", True),
        (call(), "Connection refused", True),
    ):
        share._lost(one, why)
        assert share._hung_up == hung_up
    heard = call()
    heard.peer = 1
    share._ready(heard)
    assert not share._hung_up
    await share.close()


async def test_a_death_that_is_told_before_the_birth_is_one_and_so_is_one_told_twice() -> None:
    died: list[Child] = []
    share = RemoteShare(Site("there"), 1, ("127.0.0.1", 9), REALM, LEASE_S)
    share.on_death = died.append
    told = msgpack.packb({"event": "died", "child": 4, "status": 3, "words": "leaving", "reached": {}})
    early = KeyedStream(Endpoint(REALM, 1, b"share"), share._ready, share._message, share._lost)
    share._message(early, told)
    child = share._adopt("h000", [4, 77])
    for _ in range(2):
        assert died == [child]
        share._message(early, told)
    assert died == [child]
    assert child.how_it_ended() == "exit code 3: leaving"
    await share.close()


async def test_a_folder_that_will_not_do_is_told_with_where_it_is_named(tmp_path: Path) -> None:
    agent = await start(launch(tmp_path / ("x" * 90)), tmp_path / "agent.log")
    async with ended([agent]):
        share = RemoteShare(Site("there"), 1, agent.address, REALM, LEASE_S)
        await share.open()
        with pytest.raises(ConfigError, match=r"shorter one as the `run_dir` of the host"):
            await share.furnish(SETTINGS)
        await share.close()


async def test_who_asks_a_share_that_is_ended_hears_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.hosts.remote_share.END_WALL_S", 0.1)
    monkeypatch.setattr("orchestrator.hosts.remote_share.ASK_WALL_S", 0.2)
    agent = await start(launch(tmp_path), tmp_path / "agent.log")
    async with ended([agent]):
        share = RemoteShare(Site("there"), 1, agent.address, REALM, LEASE_S)
        await share.open()
        os.kill(agent.pid, signal.SIGSTOP)
        asked = asyncio.ensure_future(spawned(share, SLEEPER, -1))
        await eventually(lambda: share._answers, DEADLINE_S)
        await share.close()
        for asking in (asked, share.machine()):
            with pytest.raises(ProcessFailedError, match="host there: its share has been ended"):
                await asyncio.wait_for(asking, DEADLINE_S)
        os.kill(agent.pid, signal.SIGCONT)


async def test_the_share_of_another_host_is_not_taken_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.hosts.remote_share.OPEN_WALL_S", 1.0)
    agent = await start(launch(tmp_path), tmp_path / "agent.log")
    async with ended([agent]):
        share = RemoteShare(Site("there"), 2, agent.address, REALM, LEASE_S)
        with pytest.raises(ConfigError, match=r"host there: .*: host 1 of the fabric answers in its place"):
            await share.open()
        agent.process.kill()


async def test_a_share_that_cannot_be_reached_is_named_however_long_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.hosts.remote_share.OPEN_WALL_S", 0.5)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    share = RemoteShare(Site("there"), 1, address, REALM, LEASE_DETACHED_S)
    with pytest.raises(ConfigError, match=f"host there: its share does not answer at 127.0.0.1 port {address[1]}"):
        await asyncio.wait_for(share.open(), DEADLINE_S)
    server.close()
