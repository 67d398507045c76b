"""Accepts HTTP connections at the agent's two endpoints and at the live map's, within bounds.

Owns how many connections there may be at once, how long one may send no request, and how long it may leave an answer
unread. So nobody can use up the agent's file descriptors or lock its operator out: at a full endpoint the connection
that has been idle longest makes room. Bytes that are no request get an answer, and one short line in the log now and
then.
"""

import asyncio
import logging
import os
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

CONNECTIONS_MAX: Final = 256
"""At one endpoint, if there are descriptors for so many."""
CONNECTIONS_MIN: Final = 8
RESERVED_DESCRIPTORS: Final = 96
"""Free descriptors that endpoints leave for daemons that return, logs and captures."""
HEADER_WALL_S: Final = 10.0
"""For a whole header, from the moment of connecting."""
IDLE_WALL_S: Final = 75.0
"""From one answer to the next request."""
ANSWER_WALL_S: Final = 120.0
"""To make an answer and have it read, at endpoints for strangers."""
LASTING_SHARE: Final = 0.5
"""The share of an endpoint's connections that endless answers may take. A request for one more gets a 503."""
SWEEP_WALL_S: Final = 1.0
TELL_WALL_S: Final = 10.0
"""At most one line about failures in this time."""
SHUTDOWN_WALL_S: Final = 1.0

Listen: TypeAlias = Callable[[Callable[[], asyncio.Protocol]], Awaitable[asyncio.AbstractServer]]
"""Starts a listening server, given a function that makes a protocol for each connection."""
_Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def room_for(endpoints: int) -> int:
    """How many connections each of so many endpoints may have, by the descriptors that this process has left."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = soft - len(os.listdir("/proc/self/fd")) - RESERVED_DESCRIPTORS
    return max(CONNECTIONS_MIN, min(CONNECTIONS_MAX, left // endpoints))


@asynccontextmanager
async def keeping(
    app: web.Application,
    listen: Listen,
    most: int = CONNECTIONS_MAX,
    answer_wall_s: float | None = ANSWER_WALL_S,
    lasting: frozenset[str] = frozenset(),
) -> AsyncIterator[None]:
    """Serve in the block. `answer_wall_s` None: answers have no time limit. Those of the paths `lasting` never do."""
    keeper = _Keeper(most, answer_wall_s, lasting)
    app.middlewares.insert(0, cast("Any", keeper.mark))
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=SHUTDOWN_WALL_S, logger=_log(), keepalive_timeout=IDLE_WALL_S
    )
    await runner.setup()
    protocols = runner.server
    assert protocols is not None
    try:
        listener = await listen(lambda: keeper.received(protocols))
        sweeping = asyncio.create_task(keeper.sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            listener.close()
    finally:
        await runner.cleanup()


class _Keeper:
    """The connections at one endpoint, and the times by which they must do something."""

    def __init__(self, most: int, answer_wall_s: float | None, lasting: frozenset[str]) -> None:
        self._most = most
        self._answer_wall_s = answer_wall_s
        self._lasting = lasting
        self._idle: dict[Any, tuple[float, float]] = {}
        """Connection -> since when it is idle, and until when it may be."""
        self._busy: dict[Any, float | None] = {}
        """Connection -> when its answer must be over; None: it may take for ever."""

    def received(self, protocols: web.Server) -> asyncio.Protocol:
        """Take a new connection, or refuse it if the endpoint is full and all are busy."""
        self._forget_gone()
        if len(self._idle) + len(self._busy) >= self._most and not self._make_room():
            return _Refused()
        protocol = protocols()
        now_s = time.monotonic()
        self._idle[protocol] = (now_s, now_s + HEADER_WALL_S)
        return cast("asyncio.Protocol", protocol)

    def _make_room(self) -> bool:
        """Close the connection that has been idle longest. Returns False when all are busy."""
        if not self._idle:
            return False
        oldest = min(self._idle, key=lambda one: self._idle[one][0])
        del self._idle[oldest]
        _abort(oldest)
        return True

    @web.middleware
    async def mark(self, request: web.Request, **behind: _Answer) -> web.StreamResponse:
        """A middleware before every handler: marks the connection as busy while its answer is made."""
        (answer,) = behind.values()
        protocol, now_s = request.protocol, time.monotonic()
        if request.path in self._lasting and self._lasting_now() >= self._most * LASTING_SHARE:
            return web.json_response({"error": "too many answers without an end are under way; come back"}, status=503)
        self._idle.pop(protocol, None)
        wall_s = None if request.path in self._lasting else self._answer_wall_s
        self._busy[protocol] = None if wall_s is None else now_s + wall_s
        try:
            return await answer(request)
        finally:
            # The connection must still take the answer, and may then send another request.
            self._busy.pop(protocol, None)
            now_s = time.monotonic()
            self._idle[protocol] = (now_s, now_s + IDLE_WALL_S)

    def _lasting_now(self) -> int:
        self._forget_gone()
        return sum(end_s is None for end_s in self._busy.values())

    async def sweep(self) -> None:
        """Close connections that send no request, or whose answer takes, longer than allowed; until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_WALL_S)
            self._forget_gone()
            now_s = time.monotonic()
            for protocol, (_since_s, until_s) in list(self._idle.items()):
                if now_s > until_s:
                    del self._idle[protocol]
                    _abort(protocol)
            for protocol, end_s in list(self._busy.items()):
                if end_s is not None and now_s > end_s:
                    del self._busy[protocol]
                    _abort(protocol)

    def _forget_gone(self) -> None:
        # A connection that has just come has no transport yet.
        before_s = time.monotonic() - SWEEP_WALL_S
        for protocol in [one for one, (since_s, _) in self._idle.items() if not one.transport and since_s < before_s]:
            del self._idle[protocol]
        for protocol in [one for one in self._busy if one.transport is None]:
            del self._busy[protocol]


class _Refused(asyncio.Protocol):
    """The protocol of a connection that was refused."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()  # uvloop's transport does not inherit from it


def _abort(protocol: Any) -> None:
    if protocol.transport is not None:
        protocol.transport.abort()


class Telling(logging.Filter):
    """Logs one short line now and then about failures at the endpoints, without tracebacks for what strangers send."""

    def __init__(self) -> None:
        super().__init__()
        self._told_s = 0.0
        self._untold = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`. Makes the record one line."""
        if record.levelno < logging.WARNING:
            return True
        wrong = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        now_s = time.monotonic()
        if self._told_s and now_s - self._told_s < TELL_WALL_S:
            self._untold += 1
            return False
        more = f" ({self._untold} more since the line before)" if self._untold else ""
        self._told_s, self._untold = now_s, 0
        if isinstance(wrong, HttpProcessingError | ConnectionError | asyncio.IncompleteReadError):
            said = " ".join(str(wrong).split())
            record.msg, record.args = (
                f"something that is no HTTP request came in: {type(wrong).__name__}: {said[:80]}{more}",
                (),
            )
            record.exc_info = None
        else:
            record.msg, record.args = f"{record.getMessage()}{more}", ()
        return True


_telling = Telling()


def _log() -> logging.Logger:
    log = logging.getLogger(__name__)
    if _telling not in log.filters:
        log.addFilter(_telling)
    return log
