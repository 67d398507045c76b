"""Follows the event log of one fabric for the open pages, and puts its lines into the page state.

Owns when the log is asked. While a page is open, a request waits at the agent, which answers as soon as there is news.
While none is open, nothing is asked; the next page that opens gets the latest lines.
`orchestrator.agent.event_collector` keeps the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.web.page_state import EVENTS_MAX, PageState

WAIT_WALL_S: Final = 15.0
"""How long a request waits for news."""
TROUBLE_WALL_S: Final = 1.0
"""How long to pause after a failed request; the snapshot loop, which fails as well, reports the reason."""

ReadLog: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Asks the agent's API `/log`."""


class EventFeed:
    """Run `await go_on()` for as long as the log is to be followed."""

    def __init__(self, read: ReadLog, page_state: PageState, watched: Callable[[], object]) -> None:
        """`watched` returns None when no page is open."""
        self._read = read
        self._page_state = page_state
        self._watched = watched
        self._called = asyncio.Event()
        self._last: int | None = None

    def hurry(self) -> None:
        """Ask now: a page has opened."""
        self._called.set()

    async def go_on(self) -> None:
        """Ask repeatedly until cancelled."""
        while True:
            if self._watched() is None:
                self._called.clear()
                await self._called.wait()
            try:
                await self._ask()
            except (ConfigError, RefusedError, NoAnswerError):
                await asyncio.sleep(TROUBLE_WALL_S)

    async def _ask(self) -> None:
        if self._last is None:
            found = await self._read({"newest": EVENTS_MAX})
        else:
            found = await self._read({"after": self._last, "limit": EVENTS_MAX, "wait_s": WAIT_WALL_S})
        self._page_state.enter_events(found["events"])
        self._last = found["last"]
