"""Workers on another host: what is said comes in order and once, whatever the network does, and their end after it."""

import asyncio
import os
import random
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest

from mrcfabric.control_message import Realm
from orchestrator.hosts.placement.site import Site
from orchestrator.hosts.remote_share import RemoteShare
from orchestrator.process.launcher import Child, ProcessFailedError
from orchestrator.workers.channel import channel_pair, next_packet
from tests.orchestrator.hosts.test_share_agent import LEASE_S, SECRET, SETTINGS, all_gone, launch
from tests.orchestrator.running import DEADLINE_S
from tests.support.shares import Agent, Line, ended, start, tree
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]
REALM = Realm(SECRET, "small", 1)
ENTRIES = "tests.orchestrator.entries"


@asynccontextmanager
async def furnished(folder: Path) -> AsyncIterator[tuple[Agent, Line, RemoteShare]]:
    """A share, and the cable to it."""
    agent = await start(launch(folder), folder / "agent.log")
    async with ended([agent]):
        line = Line(agent.address)
        await line.mend()
        share = RemoteShare(Site("there"), 1, line.address, REALM, LEASE_S)
        await share.open()
        await share.furnish(SETTINGS)
        try:
            yield agent, line, share
        finally:
            await share.close()
            await line.cut()


async def started(share: RemoteShare, entry: str, arguments: object = None) -> tuple[Child, socket.socket]:
    """A worker, and our end of its channel."""
    mine, theirs = channel_pair()
    mine.setblocking(False)
    with theirs:
        try:
            return await share.spawn_worker("rank", f"{ENTRIES}:{entry}", arguments, [], theirs), mine
        except ProcessFailedError:
            mine.close()
            raise


async def say(sock: socket.socket, packet: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(sock, packet)


async def test_what_is_said_comes_in_order_and_once_over_a_network_that_breaks(tmp_path: Path) -> None:
    async with furnished(tmp_path) as (_, line, share):
        child, sock = await started(share, "parrot")
        chance = random.Random(1)
        packets = [chance.randbytes(chance.randrange(1, 1 << 16)) for _ in range(60)]

        async def speak() -> None:
            for packet in packets:
                await say(sock, packet)

        speaking = asyncio.create_task(speak())
        heard = []
        for number in range(len(packets)):
            if number % 20 == 10:
                await line.cut()
                await line.mend()
            async with asyncio.timeout(DEADLINE_S):
                heard.append(await next_packet(sock))
        await speaking
        assert heard == packets
        sock.close()
        async with asyncio.timeout(DEADLINE_S):
            assert await child.ended == 0
        assert share.workers == {"rank"}


async def test_a_worker_that_nobody_hears_waits_and_its_end_comes_last(tmp_path: Path) -> None:
    async with furnished(tmp_path) as (_, _, share):
        child, sock = await started(share, "chatter", 40)
        # A handful fits in the sockets on the way; the worker waits with the rest.
        assert (await next_packet(sock))[:4] == bytes(4)
        assert (await share.read("logs/rank.log", 0, 1 << 16))[0].count(b"\n") < 10
        assert child.alive
        for number in range(1, 40):
            async with asyncio.timeout(DEADLINE_S):
                assert (await next_packet(sock))[:4] == number.to_bytes(4, "big")
        assert await next_packet(sock) == b""
        assert child.how_it_ended() == "exit code 1: RuntimeError: broken on purpose"
        sock.close()


async def test_how_a_worker_ended_is_told_again_when_it_is_asked_again(tmp_path: Path) -> None:
    async with furnished(tmp_path) as (_, _, share):
        worker, pid = await share._ask("worker", name="rank", entry=f"{ENTRIES}:parrot", arguments=None, preload=[])
        os.kill(pid, signal.SIGKILL)

        async def asked() -> Any:
            """As over a new conversation, when the answer got lost with the former one."""
            request = msgpack.packb({"id": 1 << 20, "op": "let_go", "worker": worker})
            answer = asyncio.get_running_loop().create_future()
            share._answers[1 << 20] = request, answer
            share._send(request)
            async with asyncio.timeout(DEADLINE_S):
                return (await answer)["ok"]

        assert [await asked(), await asked()] == [[-signal.SIGKILL, ""]] * 2


async def test_a_worker_that_is_killed_and_a_host_that_is_lost_are_heard(tmp_path: Path) -> None:
    async with furnished(tmp_path) as (agent, _, share):
        first, sock = await started(share, "parrot")
        os.kill(first.pid, signal.SIGKILL)
        assert await next_packet(sock) == b""
        assert first.how_it_ended() == "SIGKILL"
        sock.close()
        second, sock = await started(share, "parrot")
        pids = tree(agent.pid)
        os.kill(agent.pid, signal.SIGKILL)
        share.fail(f"its agent has ended: {await agent.ended}")
        assert await next_packet(sock) == b""
        assert second.how_it_ended() == "SIGKILL: host there is lost: its agent has ended: exit code -9"
        sock.close()
        await all_gone(pids)
        with pytest.raises(ProcessFailedError, match="host there is lost"):
            await started(share, "parrot")


async def test_workers_end_with_their_share(tmp_path: Path) -> None:
    async with furnished(tmp_path) as (agent, _, share):
        child, sock = await started(share, "parrot")
        pids = tree(agent.pid)
        await share.close()
        assert await next_packet(sock) == b""
        assert not child.alive
        sock.close()
        await all_gone(pids)


async def test_senseless_words_about_workers_harm_nobody(tmp_path: Path) -> None:
    async with furnished(tmp_path) as (_, _, share):
        child, sock = await started(share, "parrot")
        for ask in (
            share._ask("say", worker=99, number=1, packet=b"x"),
            share._ask("hear", worker="h000", number=1),
            share._ask("let_go", worker=-1),
            share._ask("say", worker=1, number=7, packet=b"out of turn"),
        ):
            assert await ask in (None, b"", [0, ""])
        chance = random.Random(2)
        for _ in range(20):
            packet = chance.randbytes(chance.randrange(1, 1 << 17))
            await say(sock, packet)
            assert await next_packet(sock) == packet
        assert child.alive
        sock.close()
        await eventually(lambda: not child.alive, DEADLINE_S)
