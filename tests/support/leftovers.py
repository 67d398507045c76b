"""Detached fabrics that tests have left behind, whether they failed or were interrupted.

Every process that tests start inherits a mark. A detached fabric is nobody's child, so at the end of each process of
pytest whoever still bears its mark and is no descendant of it is ended, and named on stderr.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

MARK: Final = "MRCFABRIC_TEST_PROCESS"
_POLL_S: Final = 0.05
_WALL_S: Final = 5.0


def mark() -> None:
    """Mark all that this process starts from now on."""
    os.environ[MARK] = f"{os.getpid()}-{time.time_ns()}"


def left_behind() -> dict[int, str]:
    """Pid -> command line of every marked process that is no descendant of this one."""
    wanted = f"{MARK}={os.environ[MARK]}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            # It may end meanwhile, or belong to somebody else.
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0") and not _descends(int(entry.name)):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return found


def end_left_behind() -> None:
    """End them: as a user would, then by force."""
    left = left_behind()
    for pid, line in left.items():
        sys.__stderr__ and print(f"left behind by tests: {pid} {line}", file=sys.__stderr__)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        until_s = time.monotonic() + _WALL_S
        while (left := left_behind()) and time.monotonic() < until_s:
            time.sleep(_POLL_S)


def _descends(pid: int) -> bool:
    """Whether a process is this one or descends from it."""
    while pid > 1:
        if pid == os.getpid():
            return True
        # The name in brackets may have spaces in it.
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False
