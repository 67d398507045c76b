"""Where connections to the live map's server come in.

Owns how many there may be at once, so that nobody uses up the files of a fabric's agent, and that whatever strangers
send to the port is answered and not told to the operator. What is answered is `server`'s.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

CONNECTIONS_MAX: Final = 256
"""One more is closed as it comes."""
SHUTDOWN_WALL_S: Final = 1.0


@asynccontextmanager
async def listening(app: web.Application, bound: socket.socket) -> AsyncIterator[None]:
    """Answer at a bound socket in the block."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_WALL_S, logger=_log())
    await runner.setup()
    protocols = runner.server
    assert protocols is not None

    def received() -> asyncio.Protocol:
        return protocols() if len(protocols.connections) < CONNECTIONS_MAX else _Refused()

    try:
        listener = await asyncio.get_running_loop().create_server(received, sock=bound)
        try:
            yield
        finally:
            listener.close()
    finally:
        await runner.cleanup()


class _Refused(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()  # uvloop's own is none by its type


def _log() -> logging.Logger:
    log = logging.getLogger(__name__)
    if _tells not in log.filters:
        log.addFilter(_tells)
    return log


def _tells(record: logging.LogRecord) -> bool:
    """Whether it is about us: not about bytes that are no request, nor about somebody who has gone."""
    wrong = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    return not isinstance(wrong, HttpProcessingError | ConnectionError)
