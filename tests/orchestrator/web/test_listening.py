"""What strangers may do to the port."""

import asyncio
import contextlib
import logging
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop
from aiohttp import web

from orchestrator.web.listening import CONNECTIONS_MAX, listening
from tests.support.wait import eventually_true

DEADLINE_S = 10.0


@asynccontextmanager
async def a_server() -> AsyncIterator[int]:
    """Something that answers; its port."""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/wrong":
            raise AssertionError("our own mistake")
        return web.Response(body=await request.read())

    app = web.Application()
    app.add_routes([web.get("/", answer), web.post("/", answer), web.get("/wrong", answer)])
    bound = socket.create_server(("127.0.0.1", 0))
    async with listening(app, bound):
        yield bound.getsockname()[1]


async def said(port: int, text: bytes) -> bytes:
    """What comes back until the other end closes; b"" where it does so at once. What is no whole request goes away."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(text)
        if not text.endswith(b"\r\n\r\n"):
            writer.write_eof()
        async with asyncio.timeout(DEADLINE_S):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


WELL = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def test_what_is_no_request_is_answered_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    drawn = random.Random(7)
    async with a_server() as port:
        for text in (
            *(drawn.randbytes(1 + drawn.randrange(2000)) for _ in range(20)),
            b"\x16\x03\x01" + drawn.randbytes(200),
            b"GET " + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\nx",
        ):
            assert b" 200 OK" not in await said(port, text)
        assert b" 200 OK" in await said(port, WELL)
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


async def test_our_own_mistakes_are_told(caplog: pytest.LogCaptureFixture) -> None:
    async with a_server() as port:
        assert b" 500 " in await said(port, WELL.replace(b"/ ", b"/wrong ", 1))
    assert "our own mistake" in caplog.text


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_there_is_room_for_so_many(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], caplog: pytest.LogCaptureFixture
) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_filled_and_emptied())
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


async def _filled_and_emptied() -> None:
    async with a_server() as port:

        async def answers() -> bool:
            return b" 200 OK" in await said(port, WELL)

        async def refuses() -> bool:
            return not await answers()

        with contextlib.ExitStack() as mute:
            for _ in range(CONNECTIONS_MAX):
                one = mute.enter_context(socket.socket())
                one.setblocking(False)
                await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
            await eventually_true(refuses, DEADLINE_S)  # it may not have let in the last ones yet
        await eventually_true(answers, DEADLINE_S)
