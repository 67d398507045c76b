"""Ends things that no client reads any more: each name has a deadline in wall time, which each reading puts off.

Owns the clock and one timer of the event loop for all names. The caller ends the thing itself.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

UNREAD_S: Final = 30.0
"""Wall time after which something unread ends: the client that asked for it has probably died."""


class Unread:
    """Names in use. It calls `end` with a name that has not been read for `unread_s`."""

    def __init__(self, end: Callable[[str], None], unread_s: float = UNREAD_S) -> None:
        self.unread_s = unread_s
        self._end = end
        self._read_s: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def read(self, name: str) -> None:
        """Note a reading: the name is in use, and its deadline moves."""
        self._read_s[name] = time.monotonic()
        self._watch()

    def forget(self, name: str) -> None:
        """Stop watching a name."""
        self._read_s.pop(name, None)

    def close(self) -> None:
        """Stop the timer."""
        self._read_s.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        """Look again when the name that was read longest ago reaches its deadline."""
        if self._timer is None and self._read_s:
            wait_s = min(self._read_s.values()) + self.unread_s - time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(max(0.0, wait_s), self._look)

    def _look(self) -> None:
        self._timer = None
        latest_s = time.monotonic() - self.unread_s
        for name in [name for name, read_s in self._read_s.items() if read_s <= latest_s]:
            self.forget(name)
            self._end(name)
        self._watch()
