"""The owner's end of a lease: a connection to the agent that is held open for as long as a run lives.

Nothing is said over it after the first line. When it ends, by a word or by the death of whoever held it, the agent
heals every fault of the owner and lets fabric time go on (`orchestrator.fault_desk`).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from mrcfabric.errors import RefusedError
from orchestrator.agent_client import refusal

LINE_BYTES_MAX = 4096
ANSWER_WALL_S = 10.0


@asynccontextmanager
async def lease(agent_socket: str, owner: str) -> AsyncIterator[asyncio.Future[None]]:
    """Hold a lease in `owner`'s name. The future is done when the agent has ended it, which it does only when it ends.

    Raises RefusedError when the agent cannot be reached, or somebody has a lease in that name; ConfigError for a name
    that will not do.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(agent_socket)
    except OSError as error:
        raise RefusedError(f"the agent at {agent_socket} cannot be reached: {error.strerror or error}") from None
    try:
        try:
            async with asyncio.timeout(ANSWER_WALL_S):
                _ask(writer, owner)
                await _accepted(reader)
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            raise RefusedError(f"the agent at {agent_socket} gives no lease: {error or 'no answer'}") from None
        ended = asyncio.ensure_future(_until_ended(reader))
        try:
            yield ended
        finally:
            ended.cancel()
            await asyncio.wait([ended])
    finally:
        writer.close()


def _ask(writer: asyncio.StreamWriter, owner: str) -> None:
    body = json.dumps({"owner": owner}).encode() + b"\n"
    # A body in chunks that never ends: the connection is the lease.
    writer.write(b"POST /lease HTTP/1.1\r\nHost: agent\r\nTransfer-Encoding: chunked\r\n\r\n")
    writer.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")


async def _accepted(reader: asyncio.StreamReader) -> None:
    status = (await reader.readline()).split()
    length = 0
    while line := (await reader.readline()).strip().lower():
        if line.startswith(b"content-length:"):
            length = min(int(line.partition(b":")[2]), LINE_BYTES_MAX)
    code = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0
    if code != HTTPStatus.OK:
        raise refusal(code, await reader.readexactly(length))


async def _until_ended(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(LINE_BYTES_MAX):
            pass
    except OSError:
        pass
