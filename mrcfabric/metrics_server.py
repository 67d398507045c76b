"""A Prometheus endpoint for one daemon started by hand: GET /metrics, and nothing else, on the daemon's own loop.

Owns the HTTP; `mrcfabric.metrics` renders. In a fabric the agent serves the metrics of all its nodes.
"""

import asyncio
from collections.abc import Callable

from mrcfabric.control import Address
from mrcfabric.errors import ConfigError
from mrcfabric.metrics import CONTENT_TYPE

REQUEST_BYTES_MAX = 8192
REQUEST_WALL_S = 5.0
CONNECTIONS_MAX = 16


async def serve_metrics(listen: Address, render: Callable[[], bytes]) -> None:
    """Serve until cancelled. Raises ConfigError when the address cannot be had."""
    host, port = listen
    busy = asyncio.Semaphore(CONNECTIONS_MAX)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if busy.locked():
                return
            async with busy, asyncio.timeout(REQUEST_WALL_S):
                await _answer(reader, writer, render)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # A client that is slow, has left or speaks no HTTP gets no answer.
            pass
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=REQUEST_BYTES_MAX)
    except OSError as error:
        raise ConfigError(f"metrics {host}:{port}", error.strerror or str(error)) from None
    async with server:
        await server.serve_forever()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, render: Callable[[], bytes]) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    status, body = "200 OK", b""
    if path not in (b"/metrics", b"/"):
        status = "404 Not Found"
    elif method not in (b"GET", b"HEAD"):
        status = "405 Method Not Allowed"
    else:
        body = render()
    fields = f"Content-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(f"HTTP/1.1 {status}\r\n{fields}".encode() + (b"" if method == b"HEAD" else body))
    await writer.drain()
