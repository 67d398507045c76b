"""Runs a command as the first process of a container: passes signals on and reaps orphans.

The first process of a PID namespace inherits every orphan there, and the kernel keeps each as a zombie until its parent
waits for it. A command that runs fabrics waits only for the children it knows. So if the command would be the first
process, it runs as a child of this one, which passes signals on, waits for every process, and exits as the command
does. When the first process ends, the kernel kills all others of its namespace.
"""

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Final

FIRST: Final = 1
"""The pid of the process that inherits orphans."""
PASSED_ON: Final = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)
_FROM_KERNEL: Final = 128
"""The terminal sends its signals to its whole foreground group: the command has them already."""


def stand_in_front(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; in a child process if this is the first process of its namespace."""
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
    """Wait for all that have ended; returns the exit code of `child`, as a shell reports it, once it has ended."""
    code = None
    with contextlib.suppress(ChildProcessError):  # no children are left
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                status = os.waitstatus_to_exitcode(ended[1])
                code = status if status >= 0 else 128 - status
    return code
