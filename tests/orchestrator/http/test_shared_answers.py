"""Answers that are made once for all who ask meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from orchestrator.http.shared_answers import PART_BYTES, SharedAnswers
from tests.support.wait import eventually

BODY = bytes(range(256)) * 16_384  # 4 MiB
ASKERS = 50


class Site:
    """A site that counts how often it makes its answer, and makes it when it may."""

    def __init__(self) -> None:
        self.asked = 0
        self.may = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        await self.may.wait()
        if request.path == "/wrong":
            return web.json_response({"error": "wrong"}, status=400)
        return web.Response(body=BODY, headers={"Content-Type": "text/plain; version=1.0.0"})


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Site, TestServer, aiohttp.ClientSession]]:
    site, app = Site(), web.Application()
    app.add_routes([web.get("/{any}", SharedAnswers().of(site.answer))])
    async with TestServer(app) as server, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield site, server, session


async def got(session: aiohttp.ClientSession, server: TestServer, path: str) -> tuple[int, str, bytes]:
    async with session.get(server.make_url(path)) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.read()


async def test_those_who_ask_meanwhile_get_one_answer_and_the_next_gets_a_new_one() -> None:
    async with served() as (site, server, session):
        asking = [asyncio.ensure_future(got(session, server, "/page")) for _ in range(3)]
        await eventually(lambda: site.asked == 1, 5)
        await asyncio.sleep(0.1)
        site.may.set()
        assert await asyncio.gather(*asking) == [(200, "text/plain; version=1.0.0", BODY)] * 3
        assert site.asked == 1
        await got(session, server, "/page")
        assert site.asked == 2


async def test_another_path_has_an_answer_of_its_own_and_a_mistake_its_status() -> None:
    async with served() as (site, server, session):
        site.may.set()
        asking = (got(session, server, "/page"), got(session, server, "/wrong"))
        (good, _, _), (bad, kind, body) = await asyncio.gather(*asking)
        assert (good, bad, body) == (200, 400, b'{"error": "wrong"}')
        assert kind.startswith("application/json")
        assert site.asked == 2


async def test_who_asks_for_the_head_alone_gets_no_body() -> None:
    async with served() as (site, server, _session):
        site.may.set()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"HEAD /page HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        said = await asyncio.wait_for(reader.read(), 5)
        assert f"Content-Length: {len(BODY)}".encode() in said
        assert said.endswith(b"\r\n\r\n")
        writer.close()


async def test_one_who_goes_takes_the_answer_from_nobody() -> None:
    async with served() as (site, server, session):
        first = asyncio.ensure_future(got(session, server, "/page"))
        await eventually(lambda: site.asked == 1, 5)
        second = asyncio.ensure_future(got(session, server, "/page"))
        await asyncio.sleep(0.1)
        first.cancel()
        site.may.set()
        assert (await second)[2] == BODY
        assert site.asked == 1


async def test_those_who_do_not_read_take_a_part_of_the_answer_each() -> None:
    async with served() as (site, server, _session):
        site.may.set()
        writers = []
        for _ in range(ASKERS):
            _reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
            writer.write(b"GET /page HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            writers.append(writer)
        assert server.handler is not None
        connections = server.handler.connections
        await eventually(lambda: len(connections) == ASKERS, 5)
        await asyncio.sleep(0.5)
        waiting = [one.transport.get_write_buffer_size() for one in connections if one.transport is not None]
        assert max(waiting) <= 4 * PART_BYTES
        for writer in writers:
            writer.close()
