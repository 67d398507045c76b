"""Where HTTP connections come in: at the agent's two endpoints and at the live map's.

Owns how many there may be at once, and for how long one may be without a request or take nothing of an answer, so that
nobody uses up the files of a fabric's agent or locks its operator out: where an endpoint is full, whoever has been idle
longest makes room. And what strangers send that is no request is answered, and told in one short line now and then.
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
"""At one endpoint, where there are descriptors for so many."""
CONNECTIONS_MIN: Final = 8
RESERVED_DESCRIPTORS: Final = 96
"""Of those that are free when the endpoints open, for daemons that return, logs and captures."""
HEADER_WALL_S: Final = 10.0
"""For a whole header, from the moment that somebody connects."""
IDLE_WALL_S: Final = 75.0
"""From one request to the next."""
ANSWER_WALL_S: Final = 120.0
"""For an answer to be made and taken, at endpoints for strangers."""
LASTING_SHARE: Final = 0.5
"""Of the connections at an endpoint, those that answers without an end may take; who wants one more is told 503."""
SWEEP_WALL_S: Final = 1.0
TELL_WALL_S: Final = 10.0
"""What goes wrong is told once in so long."""
SHUTDOWN_WALL_S: Final = 1.0

Listen: TypeAlias = Callable[[Callable[[], asyncio.Protocol]], Awaitable[asyncio.AbstractServer]]
"""Makes a listening server of what makes a protocol for each connection."""
_Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def room_for(endpoints: int) -> int:
    """How many connections each of so many endpoints may have by the descriptors that this process has left."""
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
    """Answer in the block. `answer_wall_s` None: answers may take for ever, as those of the paths `lasting` may."""
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
    """Who is at one endpoint, and since when."""

    def __init__(self, most: int, answer_wall_s: float | None, lasting: frozenset[str]) -> None:
        self._most = most
        self._answer_wall_s = answer_wall_s
        self._lasting = lasting
        self._idle: dict[Any, tuple[float, float]] = {}
        """Connection -> since when it is idle, and until when it may be; whoever came first stands first."""
        self._busy: dict[Any, float | None] = {}
        """Connection -> when its answer is to be over."""

    def received(self, protocols: web.Server) -> asyncio.Protocol:
        """Somebody connects."""
        self._forget_gone()
        if len(self._idle) + len(self._busy) >= self._most and not self._make_room():
            return _Refused()
        protocol = protocols()
        now_s = time.monotonic()
        self._idle[protocol] = (now_s, now_s + HEADER_WALL_S)
        return cast("asyncio.Protocol", protocol)

    def _make_room(self) -> bool:
        """Send away who has been idle longest; False when all are busy."""
        if not self._idle:
            return False
        oldest = min(self._idle, key=lambda one: self._idle[one][0])
        del self._idle[oldest]
        _abort(oldest)
        return True

    @web.middleware
    async def mark(self, request: web.Request, **behind: _Answer) -> web.StreamResponse:
        """Stands before every answer: whoever waits for one is not idle."""
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
            # It has yet to take the answer, and may come back with another request.
            self._busy.pop(protocol, None)
            now_s = time.monotonic()
            self._idle[protocol] = (now_s, now_s + IDLE_WALL_S)

    def _lasting_now(self) -> int:
        self._forget_gone()
        return sum(end_s is None for end_s in self._busy.values())

    async def sweep(self) -> None:
        """Send away who has been without a request, or with an answer, for too long; until cancelled."""
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
        # Whoever has just come has no transport yet.
        before_s = time.monotonic() - SWEEP_WALL_S
        for protocol in [one for one, (since_s, _) in self._idle.items() if not one.transport and since_s < before_s]:
            del self._idle[protocol]
        for protocol in [one for one in self._busy if one.transport is None]:
            del self._busy[protocol]


class _Refused(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()  # uvloop's own is none by its type


def _abort(protocol: Any) -> None:
    if protocol.transport is not None:
        protocol.transport.abort()


class Telling(logging.Filter):
    """One short line now and then about what goes wrong at the endpoints, and no traceback of what strangers send."""

    def __init__(self) -> None:
        super().__init__()
        self._told_s = 0.0
        self._untold = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`; makes the record one line."""
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
            record.msg, record.args = f"what is no request came in: {type(wrong).__name__}: {said[:80]}{more}", ()
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
