"""Says on standard error what somebody waits for: one line that counts seconds, or lines where there is no terminal.

Owns when to print. Prints nothing about short waits, and clears a terminal's line at the end.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

SILENT_WALL_S: Final = 1.0
"""Shorter waits are not mentioned."""
TICK_WALL_S: Final = 0.5
PLAIN_WALL_S: Final = 5.0
"""Time between two lines where there is no terminal."""
_CLEAR: Final = "\r\x1b[K"


@contextmanager
def waiting(what: str, out: TextIO | None = None, *, terminal_only: bool = False) -> Iterator[None]:
    """Print what is being done and for how long until the block ends; `terminal_only`: not into files or pipes."""
    if terminal_only and not (sys.stderr if out is None else out).isatty():
        yield
        return
    over = threading.Event()
    teller = threading.Thread(target=_tell, args=(what, sys.stderr if out is None else out, over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _tell(what: str, out: TextIO, over: threading.Event) -> None:
    began_s = time.monotonic()
    terminal = out.isatty()
    told = False
    try:
        wait_s = SILENT_WALL_S
        while not over.wait(wait_s):
            line = f"{what}: {time.monotonic() - began_s:.0f} s"
            out.write(_CLEAR + line if terminal else line + "\n")
            out.flush()
            told, wait_s = True, TICK_WALL_S if terminal else PLAIN_WALL_S
        if told and terminal:
            out.write(_CLEAR)
            out.flush()
    except (OSError, ValueError):
        pass  # the reader has gone: the work goes on without it
