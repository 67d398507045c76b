"""Who is let in, and with which headers answers go out."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.web.auth import Auth
from orchestrator.web.messages import TOKEN_HEADER


class House:
    """Something behind a auth, that counts who came in."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.port = port
        self.auth = Auth(port)
        self.visits = 0
        self.trouble: Exception | None = None

    async def visit(self, _request: web.Request) -> web.StreamResponse:
        self.visits += 1
        if self.trouble is not None:
            raise self.trouble
        return web.json_response({})


@asynccontextmanager
async def house() -> AsyncIterator[tuple[House, aiohttp.ClientSession]]:
    bound = socket.create_server(("127.0.0.1", 0))
    one = House(bound.getsockname()[1])
    app = web.Application(middlewares=[one.auth.guard])
    app.add_routes([web.get("/", one.visit), web.post("/", one.visit), web.delete("/", one.visit)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.SockSite(runner, bound).start()
    async with aiohttp.ClientSession() as session:
        yield one, session
    await runner.cleanup()


async def test_reading_needs_no_token_and_changing_does() -> None:
    async with house() as (one, session):
        async with session.get(one.url) as answer:
            assert answer.status == 200
        for method in ("POST", "DELETE"):
            for token in (None, "", "wrong", one.auth.token[:-1], one.auth.token + "x", "é"):
                headers = {} if token is None else {TOKEN_HEADER: token}
                async with session.request(method, one.url, headers=headers) as answer:
                    assert answer.status == 401
                    assert "token" in (await answer.json())["error"]
        assert one.visits == 1
        async with session.post(one.url, headers={TOKEN_HEADER: one.auth.token}) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:{port}", ""]
)
async def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:
    async with house() as (one, session):
        headers = {"Host": host.format(port=one.port), TOKEN_HEADER: one.auth.token}
        for method in ("GET", "POST"):
            async with session.request(method, one.url, headers=headers) as answer:
                assert answer.status in (400, 403)
        assert one.visits == 0


async def test_pages_of_other_origins_may_not_even_read() -> None:
    async with house() as (one, session):
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{one.port}", "http://127.0.0.1:1"):
            headers = {"Origin": origin, TOKEN_HEADER: one.auth.token}
            for method in ("GET", "POST"):
                async with session.request(method, one.url, headers=headers) as answer:
                    assert answer.status == 403
        assert one.visits == 0
        for name in ("127.0.0.1", "localhost"):
            host = f"{name}:{one.port}"
            async with session.get(one.url, headers={"Host": host, "Origin": f"http://{host}"}) as answer:
                assert answer.status == 200


async def test_answers_forbid_whatever_a_page_does_not_need() -> None:
    async with house() as (one, session):
        for path in ("/", "/nowhere"):
            async with session.get(one.url + path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("trouble", "status", "text"),
    [
        (ConfigError("kind", "no such kind", "link_down"), 400, "kind: no such kind (link_down)"),
        (RefusedError("too late"), 409, "too late"),
        (NoAnswerError("silence"), 504, "silence"),
        (web.HTTPNotFound(reason="nothing here"), 404, "nothing here"),
    ],
)
async def test_what_goes_wrong_is_said_in_words(trouble: Exception, status: int, text: str) -> None:
    async with house() as (one, session):
        one.trouble = trouble
        async with session.get(one.url) as answer:
            assert answer.status == status
            assert (await answer.json())["error"] == text


def test_every_auth_has_a_token_of_its_own() -> None:
    assert len({Auth(1).token for _ in range(50)}) == 50
    assert len(Auth(1).token) >= 32


async def test_a_token_that_is_no_text_is_a_wrong_one() -> None:
    async with house() as (one, _session):
        reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
        header = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\n{TOKEN_HEADER}: ".encode()
        writer.write(header + b"\xff\xfe\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        assert (await reader.readline()).split()[1] in (b"401", b"400")
        writer.close()
        assert one.visits == 0


def test_a_map_of_its_owner_alone_wants_the_token_of_who_looks() -> None:
    auth = Auth(9, owner_only=True)
    for path, headers, let_in in (
        ("/", {}, True),
        ("/static/app.js", {}, True),
        ("/api/fabric", {}, False),
        ("/api/stream?token=wrong", {}, False),
        (f"/api/stream?token={auth.token}", {}, True),
        ("/api/fabric", {TOKEN_HEADER: auth.token}, True),
    ):
        request = make_mocked_request("GET", path, headers={"Host": "127.0.0.1:9", **headers})
        assert (auth._refusal(request) is None) is let_in, path
