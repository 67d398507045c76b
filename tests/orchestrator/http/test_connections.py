"""What strangers may do to the port."""

import asyncio
import contextlib
import functools
import logging
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop
from aiohttp import web

from orchestrator.http import connections
from orchestrator.http.connections import CONNECTIONS_MAX, CONNECTIONS_MIN, keeping, room_for

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
    async with keeping(app, lambda protocols: asyncio.get_running_loop().create_server(protocols, sock=bound)):
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
    told = [record for record in caplog.records if record.levelno > logging.DEBUG]
    assert len(told) == 1, "one line in ten seconds"
    assert told[0].getMessage().startswith("something that is no HTTP request came in: ")
    assert told[0].exc_info is None
    assert len(told[0].getMessage()) < 200


async def test_our_own_mistakes_are_told(caplog: pytest.LogCaptureFixture) -> None:
    async with a_server() as port:
        assert b" 500 " in await said(port, WELL.replace(b"/ ", b"/wrong ", 1))
    assert "our own mistake" in caplog.text


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections._telling, "_told_s", 0.0)


@contextlib.asynccontextmanager
async def idlers(port: int, count: int) -> AsyncIterator[list[socket.socket]]:
    """Connections over which nothing is said."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
            found.append(one)
        yield found


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_idlers_make_room_for_whoever_asks(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_filled_by_idlers())


async def _filled_by_idlers() -> None:
    async with a_server() as port, idlers(port, 2 * CONNECTIONS_MAX):
        for _ in range(10):
            assert b" 200 OK" in await said(port, WELL)


async def test_who_says_nothing_or_half_a_header_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_WALL_S", 0.3)
    monkeypatch.setattr(connections, "SWEEP_WALL_S", 0.05)
    loop = asyncio.get_running_loop()
    async with a_server() as port, idlers(port, 2) as (mute, slow):
        await loop.sock_sendall(slow, b"GET / HTTP/1.1\r\n")
        for one in (mute, slow):
            async with asyncio.timeout(DEADLINE_S):
                with contextlib.suppress(ConnectionError):
                    assert await loop.sock_recv(one, 100) == b""


async def test_an_answer_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SWEEP_WALL_S", 0.05)

    async def never(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    app = web.Application()
    app.add_routes([web.get("/", never), web.get("/lasting", never)])
    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    listen = functools.partial(asyncio.get_running_loop().create_server, sock=bound)
    async with connections.keeping(app, listen, answer_wall_s=0.3, lasting=frozenset({"/lasting"})):
        lasting = asyncio.create_task(said(port, WELL.replace(b"/ ", b"/lasting ", 1)))
        assert await said(port, WELL) == b""
        assert not lasting.done()
    assert await lasting == b""


async def test_answers_without_an_end_take_half_the_room_and_the_next_is_told_so() -> None:
    over = asyncio.Event()

    async def last(_request: web.Request) -> web.Response:
        await over.wait()
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/lasting", last), web.get("/", last)])
    bound = socket.create_server(("127.0.0.1", 0))
    port, ask = bound.getsockname()[1], b"GET /lasting HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    loop = asyncio.get_running_loop()
    listen = functools.partial(loop.create_server, sock=bound)
    async with keeping(app, listen, most=8, lasting=frozenset({"/lasting"})):
        asked = [asyncio.ensure_future(said(port, ask)) for _ in range(6)]
        done: set[asyncio.Future[bytes]] = set()
        async with asyncio.timeout(DEADLINE_S):
            while len(done) < 2:
                done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=0.05)
        assert all(b" 503 " in one.result() and b"come back" in one.result() for one in done)
        others = [asyncio.ensure_future(said(port, WELL)) for _ in range(2)]
        over.set()
        for one in (*others, *(set(asked) - done)):
            assert b" 200 " in await one


def test_each_endpoint_has_its_share_of_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _what: (1024, 1024))
    assert CONNECTIONS_MIN < 3 * room_for(3) < 1024
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _what: (20, 20))
    assert room_for(3) == CONNECTIONS_MIN
