"""Turns a child of the fork server into a system program: without our descriptors, in a folder of its own.

Owns the last steps before exec. Only the child imports this module, so it is small. The kernel kills the program with
its parent as it does with any child (`orchestrator.process.forkserver`).
"""

import os
from collections.abc import Mapping
from typing import Any

_FIRST_OWN_FD = 3


def become(arguments: Mapping[str, Any], _fds: list[int]) -> None:
    """Become a program; never returns.

    `program`: its path; `title` and `arguments`: what `ps` shows; `directory`: its current folder. Raises OSError when
    it cannot be started; the fork server's child logs that.
    """
    os.chdir(arguments["directory"])
    os.closerange(_FIRST_OWN_FD, os.sysconf("SC_OPEN_MAX"))
    os.execv(arguments["program"], [arguments["title"], *arguments["arguments"]])
