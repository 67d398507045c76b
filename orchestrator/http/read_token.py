"""Lets only the owner read: the public server of a fabric that was launched with this option asks for a token.

Owns the check at the agent's public server. The token is in the run folder (`RunFolder.write_read_token`). The live map
has another one (`orchestrator.web.auth`).
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aiohttp import web

_Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ReadToken:
    """A middleware: `web.Application(middlewares=[read_token.guard])`."""

    def __init__(self, token: str) -> None:
        self._wanted = f"Bearer {token}".encode()

    @web.middleware
    async def guard(self, request: web.Request, **behind: _Answer) -> web.StreamResponse:
        """Let a request pass that has the token."""
        (answer,) = behind.values()
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if not hmac.compare_digest(given, self._wanted):
            text = "this fabric is its owner's: send `Authorization: Bearer` and what is in read.token of its folder"
            return web.json_response({"error": text}, status=401, headers={"WWW-Authenticate": "Bearer"})
        return await answer(request)
