"""Decides who may ask the live map's server for what, and what its answers allow a browser to do.

Owns the token, the check of `Host` and `Origin`, and the headers of every answer. A page of another site that asks this
server fails the check of the origin. A page whose own name resolves to this address fails the check of the host. A
program of another user of this machine may read, unless only the fabric's owner may; without the token it cannot change
anything. `server` has the requests.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from aiohttp import web

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.process.launcher import ProcessFailedError
from orchestrator.web.messages import TOKEN_HEADER

TOKEN_BYTES: Final = 24
_API: Final = "/api/"
READING: Final = frozenset({"GET", "HEAD"})
_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_HEADERS: Final = {
    # Allows only files of this server, and no script inside a page.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Auth:
    """Lets requests in or refuses them. A middleware of the app: `web.Application(middlewares=[auth.guard])`."""

    def __init__(self, port: int, token: str | None = None, *, owner_only: bool = False) -> None:
        """`port`: where the server listens; `token` None: make one; `owner_only`: reading needs the token, too."""
        self._owner_only = owner_only
        self.token = secrets.token_urlsafe(TOKEN_BYTES) if token is None else token
        self._hosts = frozenset(f"{name}:{port}" for name in _NAMES)

    @web.middleware
    async def guard(self, request: web.Request, **behind: _Answer) -> web.StreamResponse:
        """Check a request before the app answers it. aiohttp passes the app's handler as its own keyword (`behind`)."""
        (answer,) = behind.values()
        response: web.StreamResponse | None = self._refusal(request)
        if response is None:
            response = await _in_words(request, answer)
        if not response.prepared:
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    def knows(self, request: web.Request) -> bool:
        """Whether the request carries the token."""
        given = request.headers.get(TOKEN_HEADER, "")
        if not given and request.method in READING:
            given = request.query.get("token", "")  # a stream or a link cannot set headers
        return same_secret(given, self.token)

    def _refusal(self, request: web.Request) -> web.Response | None:
        host = request.headers.get("Host", "").lower()
        if host not in self._hosts:
            return _refused(403, "this server answers to loopback names alone")
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return _refused(403, "pages of other sites may not ask")
        changes = request.method not in READING
        wanted = changes or (self._owner_only and request.path.startswith(_API))
        if wanted and not self.knows(request):
            return _refused(401, "the token is missing or not the right one: open the address that the command printed")
        return None


def same_secret(given: str, secret: str) -> bool:
    """Whether a header holds the secret; bytes that are no text never do."""
    return hmac.compare_digest(given.encode(errors="surrogateescape"), secret.encode())


async def _in_words(request: web.Request, answer: _Answer) -> web.StreamResponse:
    try:
        return await answer(request)
    except ConfigError as error:
        return _refused(400, str(error))
    except RefusedError as error:
        return _refused(409, str(error))
    except (NoAnswerError, ProcessFailedError) as error:
        return _refused(504, str(error))
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _refused(error.status, error.reason)


def _refused(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
