"""The endpoint of a daemon started by hand."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.metrics_server import REQUEST_BYTES_MAX, serve_metrics
from tests.support.wait import eventually


def free_tcp_port() -> int:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return int(holder.getsockname()[1])


@asynccontextmanager
async def serving() -> AsyncIterator[int]:
    port = free_tcp_port()
    task = asyncio.create_task(serve_metrics(("127.0.0.1", port), lambda: b"mrc_up 1\n"))
    async with asyncio.timeout(5):
        await until_listening(port)
    try:
        yield port
    finally:
        task.cancel()
        await eventually(task.done, deadline_s=20)


async def until_listening(port: int) -> None:
    while True:
        try:
            await ask(port, b"GET / HTTP/1.1\r\n\r\n")
        except ConnectionRefusedError:
            await asyncio.sleep(0)
        else:
            return


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_answers() -> None:
    async with serving() as port:
        answer = await ask(port, b"GET /metrics?x HTTP/1.1\r\nHost: me\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK")
        assert b"Content-Length: 9" in head
        assert body == b"mrc_up 1\n"
        assert (await ask(port, b"HEAD /metrics HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\n")
        assert (await ask(port, b"GET /secret HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404")
        assert (await ask(port, b"PUT /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405")


async def test_no_http_gets_no_answer() -> None:
    async with serving() as port:
        assert await ask(port, b"x" * (2 * REQUEST_BYTES_MAX)) == b""
        assert (await ask(port, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_an_address_in_use_is_the_operators_mistake() -> None:
    async with serving() as port:
        with pytest.raises(ConfigError, match=f"metrics 127.0.0.1:{port}"):
            await serve_metrics(("127.0.0.1", port), lambda: b"")
