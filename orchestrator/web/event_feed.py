"""Follows the event log of one fabric for the pages that are open, and puts its lines into the page state.

Owns when the log is asked: while somebody watches, a question stands that is answered as soon as there is something
new; while nobody does, none is asked, and the first who comes finds the latest lines. The log is the agent's
(`orchestrator.agent.event_collector`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.web.page_state import EVENTS_MAX, PageState

WAIT_WALL_S: Final = 15.0
"""How long a question stands."""
TROUBLE_WALL_S: Final = 1.0
"""From one that could not be answered to the next; the reason is told by the snapshot loop, which fails as well."""

ReadLog: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""What the agent's API `/log` answers."""


class EventFeed:
    """`await go_on()` for as long as the log is to be followed."""

    def __init__(self, read: ReadLog, page_state: PageState, watched: Callable[[], object]) -> None:
        """`watched`: None when nobody watches."""
        self._read = read
        self._page_state = page_state
        self._watched = watched
        self._called = asyncio.Event()
        self._last: int | None = None

    def hurry(self) -> None:
        """Somebody has come."""
        self._called.set()

    async def go_on(self) -> None:
        """Ask again and again."""
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
