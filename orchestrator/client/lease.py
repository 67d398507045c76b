"""The owner's end of a lease: a connection to the agent that stays open for as long as a run lives.

After the first line the owner only sends signs of life. A lease ends when the owner closes the connection, when the
owner dies, or when the agent hears nothing for `LEASE_WALL_S`. Then the agent heals every fault of the owner and lets
fabric time go on (`orchestrator.agent.leases`, `orchestrator.agent.faults`).
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from mrcfabric.errors import RefusedError
from orchestrator.client.agent_client import refusal

LINE_BYTES_MAX = 4096
ANSWER_WALL_S = 10.0
LEASE_WALL_S = 15.0
"""An owner that the agent does not hear for this long, because it is stopped or hangs, loses its lease."""
BEATS = 5
"""How many signs of life the owner sends in `LEASE_WALL_S`."""


@asynccontextmanager
async def lease(agent_socket: str, owner: str) -> AsyncIterator[asyncio.Future[str]]:
    """Hold a lease in `owner`'s name. Yields a future that is done when the agent has ended the lease.

    Its result is the reason when the agent did not hear us, "" when the agent itself has ended. Raises RefusedError
    when the agent cannot be reached or the name already has a lease, ConfigError for a bad name.
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
        beating = asyncio.ensure_future(_beat(writer))
        try:
            yield ended
        finally:
            ended.cancel()
            beating.cancel()
            await asyncio.wait([ended, beating])
    finally:
        writer.close()


def _ask(writer: asyncio.StreamWriter, owner: str) -> None:
    body = json.dumps({"owner": owner}).encode() + b"\n"
    # The body is sent in chunks and never ends: the open connection is the lease.
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


async def _beat(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while True:
            await asyncio.sleep(LEASE_WALL_S / BEATS)
            writer.write(b"1\r\n\n\r\n")
            await writer.drain()


async def _until_ended(reader: asyncio.StreamReader) -> str:
    try:
        while line := await reader.readline():
            if line.startswith(b'{"ended":'):
                return str(json.loads(line)["ended"])
    except (OSError, ValueError):
        pass
    return ""
