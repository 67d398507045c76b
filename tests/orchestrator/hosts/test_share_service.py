"""What strangers and careless friends do to a standing share service: it goes on, bounded, and keeps nothing."""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts import share_service
from orchestrator.hosts.cluster_key import ClusterKey
from orchestrator.hosts.engines.local import LocalProgram
from orchestrator.hosts.engines.service import ServiceEngine, Talk
from orchestrator.hosts.share_service import ShareService
from orchestrator.process import keyed_stream
from orchestrator.process.keyed_stream import STRANGERS_MAX
from tests.orchestrator.running import is_gone
from tests.support.services import LOOPBACK, Standing, key_in, launch, standing
from tests.support.shares import everything
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

DEADLINE_S = 20.0
ENGINE = ServiceEngine()


async def hung_up(address: tuple[str, int], said: bytes) -> bytes:
    """Say this to whoever listens there, and hear until he hangs up."""
    reader, writer = await asyncio.open_connection(*address)
    heard = b""
    try:
        writer.write(said)
        async with asyncio.timeout(DEADLINE_S):
            while more := await reader.read(4096):
                heard += more
    except ConnectionError:
        pass
    writer.close()
    await asyncio.wait([asyncio.ensure_future(writer.wait_closed())])
    return heard


@asynccontextmanager
async def talk(service: Standing, heard: list[dict[str, Any]]) -> AsyncIterator[Talk]:
    """A conversation with the key, in which no share has been asked for."""
    one = Talk(service.host(), ClusterKey.read(service.key), heard.append)
    await one.open()
    yield one
    await one.close()


async def still_starts(service: Standing) -> None:
    """A share is to be had, as if nothing had happened."""
    running = await ENGINE.start(service.host(), launch())
    await running.stop()
    assert running.ended.result() == "exit code 0"


async def test_strangers_get_nothing_and_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(4)
    async with standing(tmp_path) as service:
        for size in (1, 54, 400, 70_000):
            assert await hung_up(service.address, b"\1" * 54 + chance.randbytes(size)) == b""
        # Those who say nothing are let in up to a number, and for a time; they keep nobody out who has the key.
        monkeypatch.setattr(keyed_stream, "HELLO_WALL_S", 2.0)
        silent = [await asyncio.open_connection(*service.address) for _ in range(STRANGERS_MAX)]
        await still_starts(service)
        for reader, writer in silent:
            assert await asyncio.wait_for(reader.read(), DEADLINE_S) == b""
            writer.close()
            await asyncio.wait([asyncio.ensure_future(writer.wait_closed())])
        # However many there were, the log has a line for each doubling.
        assert sum("turned away" in line for line in service.said) < 12


async def test_a_recorded_conversation_is_worth_nothing(tmp_path: Path) -> None:
    async with standing(tmp_path) as service:
        said = bytearray()

        async def overhear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, onward = await asyncio.open_connection(*service.address)

            async def back() -> None:
                while data := await there.read(65536):
                    writer.write(data)
                writer.close()

            answers = asyncio.create_task(back())
            while data := await reader.read(65536):
                said.extend(data)
                onward.write(data)
            onward.close()
            await answers

        async with await asyncio.start_server(overhear, LOOPBACK, 0) as tap:
            running = await ENGINE.start(service.host(tap.sockets[0].getsockname()), launch())
            await running.stop()
        lines = len(service.said)
        assert launch().message["secret"].encode() not in said
        heard = await hung_up(service.address, bytes(said))
        # Its own hello is all that it says to a replayed one.
        assert len(heard) == keyed_stream._HELLO_BYTES
        assert [line for line in service.said[lines:] if "turned away" not in line] == []
        await still_starts(service)


async def test_who_has_the_key_and_asks_amiss_is_hung_up_on(tmp_path: Path) -> None:
    async with standing(tmp_path) as service:
        sealed = ClusterKey.read(service.key).seal
        for amiss in (
            7,
            {"op": "run", "launch": "x"},
            {"op": "launch", "sealed": b"in clear"},
            {"op": "launch", "sealed": sealed(b"no json")},
            {"op": "launch", "sealed": sealed(b"{}")},
            {"op": "launch", "sealed": sealed(b'{"host": "x", "message": {"fabric": 1, "epoch": 2}, "ports": [1]}')},
        ):
            async with talk(service, []) as one:
                one._stream.send(msgpack.packb(amiss))
                await asyncio.wait_for(one.over, DEADLINE_S)
        order = {"host": "vm2", "message": dict(launch().message), "ports": [], "ready_wall_s": 5.0}
        async with talk(service, []) as one:
            for _ in range(2):  # one share for one conversation
                one.say({"op": "launch", "sealed": sealed(json.dumps(order).encode())})
            await asyncio.wait_for(one.over, DEADLINE_S)
        async with talk(service, heard := []) as one:
            one.say({"op": "stop", "launch": "never heard of"})
            await eventually(lambda: heard, DEADLINE_S)
            assert heard == [{"stopped": "never heard of"}]
        await still_starts(service)


async def test_several_shares_at_once_and_no_more_than_the_service_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_service, "SHARES_MAX", 4)
    async with standing(tmp_path) as service:
        fabrics = [ENGINE.start(service.host(), launch(fabric=f"fabric{number}")) for number in range(4)]
        shares = await asyncio.gather(*fabrics)
        with pytest.raises(ConfigError, match="host vm2: has 4 shares already"):
            await ENGINE.start(service.host(), launch(fabric="other"))
        await asyncio.gather(*(share.stop() for share in shares))
        await still_starts(service)


async def test_callers_are_few_and_one_who_takes_nothing_gets_no_more_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_service, "CALLERS_MAX", 2)
    monkeypatch.setattr(share_service, "UNSENT_BYTES_MAX", 0)
    heard: list[str] = []
    async with standing(tmp_path) as service:
        async with talk(service, []):
            running = await ENGINE.start(service.host(), launch(on_line=heard.append))
            with pytest.raises(ConfigError):
                async with talk(service, []):
                    pass
            await running.stop()
        assert not heard
        assert any("share of host 1: signal 15" in line for line in service.said)


async def test_a_service_that_ends_starts_nothing(tmp_path: Path) -> None:
    service = ShareService(ClusterKey.read(key_in(tmp_path)), tmp_path / "runs", lambda _line: None)
    stream = service._accept()
    service._callers[stream] = False
    service.stop.set()
    order = {"host": "vm2", "message": dict(launch().message), "ports": [], "ready_wall_s": 5.0}
    service._message(stream, msgpack.packb({"op": "launch", "sealed": service._key.seal(json.dumps(order).encode())}))
    assert not service._tasks
    assert stream._why == "the service ends"


async def test_a_caller_who_leaves_while_his_share_starts_leaves_no_share(tmp_path: Path) -> None:
    async with standing(tmp_path) as service:
        before = everything()
        # With a lease that is longer than this test waits.
        starting = asyncio.create_task(ENGINE.start(service.host(), launch(lease_s=600.0)))
        await eventually(lambda: len(everything()) > len(before), DEADLINE_S)
        [pid] = set(everything()) - set(before)
        starting.cancel()
        await asyncio.wait([starting])
        await eventually(lambda: is_gone(pid), DEADLINE_S)


async def test_a_service_that_ends_waits_for_a_share_that_it_is_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, stopping, go = LocalProgram.stop, asyncio.Event(), asyncio.Event()
    ended: list[str] = []

    async def slowly(program: LocalProgram) -> None:
        stopping.set()
        await go.wait()
        await stop(program)
        ended.append(program.ended.result())

    monkeypatch.setattr(LocalProgram, "stop", slowly)
    async with standing(tmp_path) as service:
        before = everything()
        starting = asyncio.create_task(ENGINE.start(service.host(), launch(lease_s=600.0)))
        await eventually(lambda: len(everything()) > len(before), DEADLINE_S)
        starting.cancel()
        await asyncio.wait([starting])
        await asyncio.wait_for(stopping.wait(), DEADLINE_S)
        asyncio.get_running_loop().call_later(0.1, go.set)
    assert len(ended) == 1


@pytest.mark.slow
async def test_launches_one_after_the_other_leave_nothing(tmp_path: Path) -> None:
    async with standing(tmp_path) as service:
        await still_starts(service)
        before = len(everything()), len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
        for _ in range(5):
            await still_starts(service)
        await eventually(
            lambda: (len(everything()), len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())) == before,
            DEADLINE_S,
        )
        assert [path.name for path in service.run_dir.iterdir()] == []
