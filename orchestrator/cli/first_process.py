"""What the first process of a container does: it stands in front of the command, and buries who died without a parent.

The first process of a PID namespace inherits every orphan there, and the kernel keeps each as a zombie until it is
waited for. A command that runs fabrics waits for the children that it knows; so where it would be the first process, it
runs as a child of this one, which passes signals on, waits for everybody, and ends as the command does. With the first
process the kernel ends all others of its namespace.
"""

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Final

FIRST: Final = 1
"""The process that inherits orphans."""
PASSED_ON: Final = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)
_FROM_KERNEL: Final = 128
"""A terminal's signals are for all of its foreground: the command has them already."""


def stand_in_front(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; in a child where this is the first process of its namespace."""
    if os.getpid() != FIRST:
        return command()
    heard = PASSED_ON | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return command()
    while True:
        told = signal.sigwaitinfo(heard)
        if told.si_signo == signal.SIGCHLD:
            if (code := _bury(child)) is not None:
                return code
        elif told.si_code != _FROM_KERNEL:
            os.kill(child, told.si_signo)


def _bury(child: int) -> int | None:
    """Wait for all that have ended; the exit code of `child` once it is among them, as a shell reports it."""
    code = None
    with contextlib.suppress(ChildProcessError):  # there is nobody any more
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                status = os.waitstatus_to_exitcode(ended[1])
                code = status if status >= 0 else 128 - status
    return code
