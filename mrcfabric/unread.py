"""The end of what nobody reads any more: names with a deadline in wall time that each reading puts off.

Owns the clock and one timer of the event loop for all names. What ends, and what that means, is the caller's.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

UNREAD_S: Final = 30.0
"""Wall time after which something ends that nobody reads: who asked for it has died."""


class Unread:
    """Names in use. `end` is called with the name of one that has not been read for `unread_s`."""

    def __init__(self, end: Callable[[str], None], unread_s: float = UNREAD_S) -> None:
        self.unread_s = unread_s
        self._end = end
        self._read_s: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def read(self, name: str) -> None:
        """The name is in use, and has been read just now."""
        self._read_s[name] = time.monotonic()
        self._watch()

    def forget(self, name: str) -> None:
        """The name is not in use any more."""
        self._read_s.pop(name, None)

    def close(self) -> None:
        """Nothing waits any more."""
        self._read_s.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        """Look again when the name that was read longest ago has been unread for too long."""
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
