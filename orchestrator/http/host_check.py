"""Checks the name by which a request calls this endpoint: no page of another site may reach it by a name of its own.

Owns the check of `Host` at the agent's public server. The live map has another one (`orchestrator.web.auth`).
"""

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import TypeAlias

from aiohttp import web

_Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HostCheck:
    """A middleware: `web.Application(middlewares=[check.guard])`."""

    def __init__(self, host: str, port: int) -> None:
        """`host`, `port`: where the endpoint listens."""
        self._host = host
        self._port = port

    @web.middleware
    async def guard(self, request: web.Request, **behind: _Answer) -> web.StreamResponse:
        """Let a request pass if it calls this endpoint by an address, or as localhost on loopback."""
        (answer,) = behind.values()
        if not self.knows(request.headers.get("Host", "")):
            text = f"this endpoint answers to {self._host}:{self._port}, by address"
            return web.json_response({"error": text}, status=403)
        return await answer(request)

    def knows(self, host: str) -> bool:
        """Whether a `Host` header means this server. A name does not: its owner may have it point here."""
        name, _, port = host.lower().rpartition(":")
        if port != str(self._port):
            return False
        if name == "localhost":
            return ip_address(self._host).is_loopback
        try:
            asked, here = ip_address(name.strip("[]")), ip_address(self._host)
        except ValueError:
            return False
        return asked == here or (asked.is_loopback and here.is_loopback)
