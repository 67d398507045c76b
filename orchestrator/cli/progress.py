"""Says on standard error what somebody waits for: one line that counts seconds, or lines where there is no terminal.

Owns when to print. Prints nothing about short waits, and clears a terminal's line at the end. Whoever prints something
else meanwhile does so through `Wait.aside`, so that the two do not stand in one line.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO, TypeAlias

SILENT_WALL_S: Final = 1.0
"""Shorter waits are not mentioned."""
TICK_WALL_S: Final = 0.5
PLAIN_WALL_S: Final = 5.0
"""Time between two lines where there is no terminal."""
_CLEAR: Final = "\r\x1b[K"

What: TypeAlias = str | Callable[[], str]
"""What is being done; called each time if it changes."""


class Wait:
    """One wait."""

    def __init__(self, what: What, out: TextIO) -> None:
        self._what = what
        self._out = out
        self._terminal = out.isatty()
        self._began_s = time.monotonic()
        self._told = False
        """Whether a line stands on the terminal now."""
        self._turn = threading.Lock()

    def aside(self, say: Callable[[], None]) -> None:
        """Clear the line, and have something else printed."""
        with self._turn:
            self._clear()
            say()

    def tell(self, over: threading.Event) -> None:
        """Print until it is over."""
        wait_s = SILENT_WALL_S
        try:
            while not over.wait(wait_s):
                with self._turn:
                    what = self._what if isinstance(self._what, str) else self._what()
                    line = f"{what}: {time.monotonic() - self._began_s:.0f} s"
                    self._told = self._terminal
                    self._out.write(_CLEAR + line if self._terminal else line + "\n")
                    self._out.flush()
                wait_s = TICK_WALL_S if self._terminal else PLAIN_WALL_S
            with self._turn:
                self._clear()
        except (OSError, ValueError):
            pass  # the reader has gone: the work goes on without it

    def _clear(self) -> None:
        if self._told:
            self._told = False
            self._out.write(_CLEAR)
            self._out.flush()


@contextmanager
def waiting(what: What, out: TextIO | None = None, *, terminal_only: bool = False) -> Iterator[Wait]:
    """Print what is being done and for how long until the block ends; `terminal_only`: not into files or pipes."""
    out = sys.stderr if out is None else out
    wait = Wait(what, out)
    if terminal_only and not out.isatty():
        yield wait
        return
    over = threading.Event()
    teller = threading.Thread(target=wait.tell, args=(over,), daemon=True)
    teller.start()
    try:
        yield wait
    finally:
        over.set()
        teller.join()
