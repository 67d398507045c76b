"""Who may ask the live map's server for what, and what its answers allow a browser to do.

Owns the token, the check of `Host` and `Origin`, and the headers of every answer. A page of another site that has this
server's address fails at the origin; one that has had its own name point here fails at the host; a program of another
user of this machine may look, unless the fabric is its owner's alone, and fails at the token when it wants to change
something. What there is to ask is `server`'s.
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
    # Nothing but files of this server, and no script that stands in a page.
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
    """Lets requests in, or turns them away. A middleware of the app: `web.Application(middlewares=[auth.guard])`."""

    def __init__(self, port: int, token: str | None = None, *, owner_only: bool = False) -> None:
        """`port`: where the server listens; `token` None: a new one; `owner_only`: who looks needs it, too."""
        self._owner_only = owner_only
        self.token = secrets.token_urlsafe(TOKEN_BYTES) if token is None else token
        self._hosts = frozenset(f"{name}:{port}" for name in _NAMES)

    @web.middleware
    async def guard(self, request: web.Request, **behind: _Answer) -> web.StreamResponse:
        """Stands before every answer of the app; the framework has its own keyword for the one that is `behind`."""
        (answer,) = behind.values()
        response: web.StreamResponse | None = self._refusal(request)
        if response is None:
            response = await _in_words(request, answer)
        if not response.prepared:
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    def knows(self, request: web.Request) -> bool:
        """Whether whoever asks has the token."""
        given = request.headers.get(TOKEN_HEADER, "")
        if not given and request.method in READING:
            given = request.query.get("token", "")  # of a stream or a link, which have no headers
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
    """Whether a header has it; bytes that are no text are nobody's secret."""
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
