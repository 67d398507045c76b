"""One open page: a WebSocket that sends it the newest state, at the pace at which the page reads.

Owns what a viewer has been sent so far. A viewer that does not read holds one message and what its socket buffers. When
it reads again, it gets the state as it is then. `page_state` has everything that there is to send.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from aiohttp import WSMsgType, web

from orchestrator.web import messages
from orchestrator.web.page_state import PageState, Watched

EVENTS_AT_FIRST: Final = 500
QUESTION_BYTES_MAX: Final = 16 * 1024
CLOSE_WALL_S: Final = 0.5
"""How long a page has to confirm the end of the connection."""
PING_WALL_S: Final = 20.0
"""How soon a page that vanished is noticed."""


class Viewer:
    """Make one for a request, run `await serve(request)`, and `wake` it when there is news."""

    def __init__(self, page_state: PageState, on_watch: Callable[[], None], *, known: bool = False) -> None:
        """`on_watch` is called when it begins to watch other QPs; `known`: it has the token."""
        self.known = known
        self.on_watch = on_watch
        self.watches: list[Watched] = []
        self.closing = False
        """Whether the page is to connect again and begin anew."""
        self._page_state = page_state
        self._news = asyncio.Event()
        self._news.set()  # a new page has seen nothing yet
        self._place = 0
        """The place of the snapshot or the error that it was sent last."""
        self._evs_told: dict[Watched, int] = {}
        """Watched QP -> the place of the EVs that it was sent last."""
        self._events_told = max(0, page_state.events.end - EVENTS_AT_FIRST)
        self._events_sent = False
        self._lines_told = 0
        self._run_place: int | None = None
        self._run_number: int | None = None
        self._complaint = ""

    def wake(self) -> None:
        """Send what is new."""
        self._news.set()

    def close(self) -> None:
        """Close the connection when the message under way has been sent."""
        self.closing = True
        self._news.set()

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Serve the page until either side ends the connection."""
        socket = web.WebSocketResponse(
            timeout=CLOSE_WALL_S, heartbeat=PING_WALL_S, max_msg_size=QUESTION_BYTES_MAX, compress=False
        )
        await socket.prepare(request)
        telling = asyncio.ensure_future(self._tell(socket))
        try:
            async for message in socket:
                if message.type is not WSMsgType.TEXT:
                    break
                self._hear(message.data)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
        return socket

    def _hear(self, text: str) -> None:
        try:
            self.watches = messages.watched(text)
            self._evs_told.clear()
            self.on_watch()
        except ValueError as wrong:
            self._complaint = str(wrong)
            self.wake()

    async def _tell(self, socket: web.WebSocketResponse) -> None:
        try:
            while not self.closing:
                await self._news.wait()
                self._news.clear()
                for text in self._due():
                    await socket.send_str(text)
            await socket.close(code=1012, message=b"begin anew")
        except (ConnectionError, OSError):
            pass  # the page has gone, and the reader of its messages ends, too

    def _due(self) -> Iterator[str]:
        """The messages that it has not had yet; each is the newest at the moment when it is asked for."""
        page_state = self._page_state
        if self._complaint:
            complaint, self._complaint = self._complaint, ""
            yield messages.error(complaint)
        if not self._events_sent or self._events_told < page_state.events.end:
            lines, lost = page_state.events.since(self._events_told)
            self._events_told, self._events_sent = page_state.events.end, True
            yield messages.events(lines, lost)
        yield from self._run_due()
        current = page_state.trouble or page_state.snapshot
        if current is not None and current.place > self._place:
            self._place = current.place
            yield current.text
        for watched in self.watches:
            newest = page_state.evs.get(watched)
            if newest is not None and newest.place > self._evs_told.get(watched, 0):
                self._evs_told[watched] = newest.place
                yield newest.text

    def _run_due(self) -> Iterator[str]:
        page_state = self._page_state
        if page_state.run_place == self._run_place:
            return
        number = None if page_state.run is None else page_state.run["number"]
        if number != self._run_number:
            self._run_number, self._lines_told = number, 0
        lines, lost = page_state.run_lines.since(self._lines_told)
        self._run_place, self._lines_told = page_state.run_place, page_state.run_lines.end
        yield messages.run(page_state.run, lines, lost)
