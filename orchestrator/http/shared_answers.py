"""Makes a costly answer once for all who ask while it is made, and sends it in parts.

Owns which answers are under way. However many strangers ask at a door at once, the daemons are asked once, and the
memory holds one answer and some parts of it per connection. Who asks while an answer is made gets that one: what it
says may be as old as the time that it took to make.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from aiohttp import hdrs, web

PART_BYTES: Final = 1 << 16
"""An answer is written so much at a time; a few parts wait for a reader who does not read."""
_Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SharedAnswers:
    """The answers of one site that are being made, by path."""

    def __init__(self) -> None:
        self._making: dict[str, asyncio.Future[web.Response]] = {}

    def of(self, answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> _Answer:
        """Wrap an endpoint that reads, and whose answer depends on the path alone."""

        async def shared(request: web.Request) -> web.StreamResponse:
            making = self._making.get(request.path)
            if making is None:
                making = asyncio.ensure_future(_made(answer, request))
                self._making[request.path] = making
                making.add_done_callback(lambda _made: self._making.pop(request.path))
            # Whoever goes meanwhile takes the answer from nobody else.
            return await _sent(request, await asyncio.shield(making))

        return shared


async def _made(answer: _Answer, request: web.Request) -> web.Response:
    response = await answer(request)
    assert isinstance(response, web.Response), "an answer of another kind cannot be sent twice"
    return response


async def _sent(request: web.Request, made: web.Response) -> web.StreamResponse:
    body = made.body if isinstance(made.body, bytes) else b""
    sent = web.StreamResponse(status=made.status, headers={"Content-Type": made.headers["Content-Type"]})
    sent.content_length = len(body)
    await sent.prepare(request)
    if request.method != hdrs.METH_HEAD:
        for start in range(0, len(body), PART_BYTES):
            await sent.write(body[start : start + PART_BYTES])
    await sent.write_eof()
    return sent
