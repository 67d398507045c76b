"""The agent's end of leases: who holds each, from which process, and when it was last heard.

Owns the connections. An owner sends signs of life. An owner that is not heard for `LEASE_WALL_S`, because it is stopped
or hangs, loses its lease as if it had died, and is told so when it goes on. Time in which the agent itself was stopped
does not count. `orchestrator.agent.faults` then ends the owner's faults, hold on time and programs.
"""

import asyncio
import json
import os
import socket
import struct
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.naming import shown
from orchestrator.client.lease import LEASE_WALL_S
from orchestrator.process.answer_wait import done_within
from orchestrator.process.ports import command_of

OWNER_CHARS_MAX = 80
LEASES_MAX = 16
LOST_KEPT = 64
"""For how many owners that lost their lease the reason is remembered."""
_CREDENTIALS = struct.Struct("3i")
"""`struct ucred`: process, user, group."""


@dataclass(slots=True)
class Held:
    """One lease."""

    owner: str
    pid: int
    """The process at the other end, as the kernel reports it."""
    command: str
    since_s: float
    heard_s: float

    def record(self) -> dict[str, Any]:
        """As plain data: wall seconds since it began, since it was heard, and until it ends if it stays silent."""
        now_s = time.monotonic()
        silent_s = now_s - self.heard_s
        return {
            "owner": self.owner,
            "pid": self.pid,
            "command": self.command,
            "leased_s": round(now_s - self.since_s, 1),
            "heard_s": round(silent_s, 1),
            "ends_in_s": round(max(0.0, LEASE_WALL_S - silent_s), 1),
        }


class Leases:
    """All leases of one fabric."""

    def __init__(self, on_end: Callable[[str], Awaitable[None]], on_lost: Callable[[Held], None]) -> None:
        """`on_end` is awaited with the owner of each lease that ends; `on_lost` is called when the owner was silent."""
        self._on_end = on_end
        self._on_lost = on_lost
        self._held: dict[str, Held] = {}
        self._lost: OrderedDict[str, str] = OrderedDict()

    def get(self, owner: str) -> Held | None:
        """The lease of an owner, None without one."""
        return self._held.get(owner)

    def require(self, owner: str, what: str) -> None:
        """Raises RefusedError unless this owner holds a lease.

        `what`, for the message: what would outlive the owner.
        """
        if owner in self._held:
            return
        if owner in self._lost:
            raise RefusedError(self._lost[owner])
        who = shown(owner) if owner else "who gives no name"
        cause = "a lease ends with the launch of the fabric that gave it: attach anew"
        raise RefusedError(f"{who} holds no lease: {what} when it dies ({cause})")

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve a request that an owner holds open.

        The request's body is one line of JSON, `{"owner": ...}`, followed by signs of life; it does not end. The answer
        is one line, and a second one, `{"ended": why}`, when the owner was silent for too long.
        """
        owner = await _owner_of(request)
        if owner in self._held:
            raise RefusedError(f"{owner} has a lease already")
        if len(self._held) >= LEASES_MAX:
            raise RefusedError(f"{LEASES_MAX} leases are out")
        pid, now_s = peer_pid(request), time.monotonic()
        held = self._held[owner] = Held(owner, pid, command_of(pid), now_s, now_s)
        self._lost.pop(owner, None)
        response = web.StreamResponse()
        try:
            await response.prepare(request)
            await response.write(json.dumps({"owner": owner}).encode() + b"\n")
            if why := await self._until_ended(held, request):
                await response.write(json.dumps({"ended": why}).encode() + b"\n")
        except (ConnectionError, OSError):
            pass  # the owner has closed the connection or died
        finally:
            self._held.pop(owner, None)
            await asyncio.shield(self._on_end(owner))
        return response

    async def _until_ended(self, held: Held, request: web.Request) -> str:
        """Wait until a lease ends: "" when the owner has hung up, otherwise the reason why it lost the lease."""
        while True:
            reading = asyncio.ensure_future(request.content.readany())
            try:
                if not await done_within(reading, LEASE_WALL_S):
                    break
                if not reading.result():
                    return ""
            finally:
                reading.cancel()
            held.heard_s = time.monotonic()
        why = (
            f"{held.owner} (pid {held.pid}) has lost its lease: it was not heard for {LEASE_WALL_S:g} s; "
            "its faults are healed, and fabric time goes on without it"
        )
        del self._held[held.owner]
        self._lost[held.owner] = why
        while len(self._lost) > LOST_KEPT:
            self._lost.popitem(last=False)
        self._on_lost(held)
        return why


def peer_pid(request: web.Request) -> int:
    """The process at the other end of a Unix socket; 0 when it is unknown."""
    connection = None if request.transport is None else request.transport.get_extra_info("socket")
    if connection is None or connection.family != socket.AF_UNIX:
        return 0
    with socket.socket(fileno=os.dup(connection.fileno())) as twin:
        found = twin.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(found)[0])


async def _owner_of(request: web.Request) -> str:
    try:
        body = json.loads(await request.content.readline())
    except (ValueError, ConnectionError, RecursionError, BadHttpMessage):  # nested too deeply; a line too long
        body = None
    owner = body.get("owner") if isinstance(body, dict) else None
    if not isinstance(owner, str) or not 0 < len(owner) <= OWNER_CHARS_MAX or not owner.isprintable():
        raise ConfigError("owner", f"{owner!r} will not do", f"1 to {OWNER_CHARS_MAX} printable characters")
    return owner
