"""Ctrl-C while a command runs: an exception where the command is, so that it can clean up.

Owns who handles SIGINT once a command's modules are imported. Before, `orchestrator.cli.__main__` has left it to the
kernel, which ends the process. `asyncio` has a handler of its own while a loop runs.
"""

import _thread
import os
import signal
import sys
import time
from typing import Any

AGAIN_WALL_S = 0.001


def heed_interrupts() -> None:
    """Raise KeyboardInterrupt on Ctrl-C from now on, unless this process was told to ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _not_lost


def _not_lost(raised: Any) -> None:
    """Repeat a Ctrl-C that came where nothing can be raised, as in a callback of the import system.

    Python prints such an exception and goes on, as if nobody had pressed anything. A thread repeats it a moment later:
    here it could not be raised either.
    """
    if raised.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(raised)
        return
    _thread.start_new_thread(_repeat, ())


def _repeat() -> None:
    time.sleep(AGAIN_WALL_S)
    os.kill(os.getpid(), signal.SIGINT)


def follows_interrupt(error: BaseException) -> bool:
    """Whether an error was raised while a Ctrl-C ended what ran."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None
