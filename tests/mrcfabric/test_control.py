"""The asking end of the control channel over loopback sockets, on both loops."""

import asyncio
import time
from typing import Any

import pytest

from mrcfabric.control import ControlClient, ControlServer, NoAnswerError, Realm
from mrcfabric.control_message import PAGE_BYTES
from mrcfabric.errors import ConfigError, RefusedError
from tests.support.control import REALM, CountingOps, serving
from tests.support.loops import Run, run

__all__ = ["run"]


def test_calls_and_refusals(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        async with serving(ops) as server, ControlClient(server.address, REALM) as client:
            sums = await asyncio.gather(*(client.call("add", {"a": index, "b": 1}) for index in range(50)))
            assert sums == list(range(1, 51))
            with pytest.raises(RefusedError, match=r"not with \['why'\]"):
                await client.call("refuse", {"why": 1})
            with pytest.raises(RefusedError, match="unknown op 'ad'; known: add, long"):
                await client.call("ad")
            assert server.counters()["refused"] == 2

    run(body())


def test_long_answers_come_in_pages(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        async with serving(ops) as server, ControlClient(server.address, REALM) as client:
            answer = await client.call("long", {"kb": 300})
            assert answer == await ops.long({"kb": 300})
            assert ops.calls == 2
            assert server.counters()["requests"] == 1

    run(body())


def test_pages_may_come_in_any_order_and_get_lost(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several are asked for at once; each is sent late, lost or out of turn, and the answer is whole all the same."""
    sent, kept = ControlServer._send, list[Any]()

    async def send(self: ControlServer, *packet: Any) -> None:
        kept.append(packet)
        if len(kept) % 5 == 0:
            kept.pop()  # lost
        if len(kept) % 3 == 0:
            for one in reversed(kept[-2:]):
                await sent(self, *one)
        elif len(kept) % 3 == 1:
            await sent(self, *packet)

    monkeypatch.setattr(ControlServer, "_send", send)

    async def body() -> None:
        ops = CountingOps()
        async with serving(ops) as server, ControlClient(server.address, REALM) as client:
            assert await client.call("long", {"kb": 500}, timeout_s=20) == await ops.long({"kb": 500})
            assert server.counters()["requests"] == 1

    run(body())


def test_no_answer_says_whom_and_why(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        async with serving(ops) as server:
            async with ControlClient(server.address, REALM) as client:
                with pytest.raises(NoAnswerError, match=r"wait: no answer from 127.0.0.1:.*carried out"):
                    await client.call("wait", timeout_s=0.3)
            wrong = Realm(b"another secret!!", "demo", 3)
            async with ControlClient(server.address, wrong) as client:
                with pytest.raises(NoAnswerError):
                    await client.call("add", {"a": 1, "b": 1}, timeout_s=0.1)
            address = server.address
        async with ControlClient(address, REALM) as client:
            with pytest.raises(NoAnswerError, match="refused"):
                await client.call("add", {"a": 1, "b": 1}, timeout_s=0.3)

    run(body())


def test_a_call_under_way_fails_at_its_deadline_when_the_client_is_closed(run: Run) -> None:
    async def body() -> None:
        async with serving(CountingOps()) as server:
            client = ControlClient(server.address, REALM)
            await client.open()
            call = asyncio.create_task(client.call("wait", timeout_s=0.5))
            await asyncio.sleep(0)
            client.close()
            with pytest.raises(NoAnswerError, match=r"wait: no answer .*: the socket has been closed"):
                await call

    run(body())


def test_an_answer_that_came_while_the_asker_was_stopped_is_read(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        async with serving(ops) as server, ControlClient(server.address, REALM) as client:
            call = asyncio.create_task(client.call("add", {"a": 2, "b": 3}, timeout_s=0.4))
            await asyncio.sleep(0)
            time.sleep(1.5)  # noqa: ASYNC251 - as if we had been stopped
            assert await call == 5

    run(body())


def test_a_daemon_that_starts_late_is_found(run: Run) -> None:
    async def body() -> None:
        ops = CountingOps()
        async with serving(ops) as server:
            address = server.address
        async with ControlClient(address, REALM) as client:
            call = asyncio.create_task(client.call("add", {"a": 2, "b": 3}))
            late = ControlServer(address, REALM, ops.ops())
            await late.open()
            serve = asyncio.create_task(late.serve())
            assert await call == 5
            serve.cancel()
            await asyncio.wait([serve])

    run(body())


def test_a_number_that_no_message_can_carry_is_the_operators_mistake(run: Run) -> None:
    async def body() -> None:
        async with serving(CountingOps()) as server, ControlClient(server.address, REALM) as client:
            with pytest.raises(ConfigError, match="64 bits"):
                await client.call("add", {"a": 1 << 64})

    run(body())


def test_a_request_that_does_not_fit_a_datagram_is_refused(run: Run) -> None:
    async def body() -> None:
        async with serving(CountingOps()) as server, ControlClient(server.address, REALM) as client:
            with pytest.raises(RefusedError, match="at most 32768"):
                await client.call("add", {"a": bytes(PAGE_BYTES)})

    run(body())
