"""How a child of the fork server becomes a program of the system: without our descriptors, in a folder of its own.

Owns the last steps before exec; imported in the child alone, and therefore small. That the kernel kills the child with
its parent (`orchestrator.process.forkserver`) holds for the program too.
"""

import os
from collections.abc import Mapping
from typing import Any

_FIRST_OWN_FD = 3


def become(arguments: Mapping[str, Any], _fds: list[int]) -> None:
    """Never returns. `program`: its path; `title` and `arguments`: what `ps` shows; `directory`: where it stands.

    Raises OSError when it cannot be started, which the fork server's child logs.
    """
    os.chdir(arguments["directory"])
    os.closerange(_FIRST_OWN_FD, os.sysconf("SC_OPEN_MAX"))
    os.execv(arguments["program"], [arguments["title"], *arguments["arguments"]])
