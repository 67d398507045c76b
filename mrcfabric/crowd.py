"""Lowers the priority of daemons when a host runs a crowd of them.

Where hundreds of busy processes share a core, the agent, a scrape or a command gets a hundredth of it. So each daemon
of a crowd takes the least priority of the usual policy once it runs. It loses nothing by that while no other program
wants the CPU; beside others, a busy crowd weighs as much as a few programs; and fabric time does not depend on wall
time. A daemon that still starts keeps its priority: 304 daemons with the least priority from the first moment were
ready after 117 s beside other programs, instead of 18 s.
"""

import contextlib
import os
from typing import Final

CROWD_PER_CORE: Final = 32
"""More processes per core than this are a crowd; the demonstration has 28 on two cores."""
NICE: Final = 19
"""The nice value of a crowd. Beside 608 busy daemons on two cores, a program got 0.03 of a core when their nice value
was 5 above its own, and 0.4 when it was 19 above."""


def is_crowd(processes: int) -> bool:
    """Whether this many processes are a crowd on this host."""
    return processes > CROWD_PER_CORE * len(os.sched_getaffinity(0))


def has_cores(processes: int) -> bool:
    """Whether each of this many processes can have a core to itself; False when nobody knows how many there are."""
    return 0 < processes <= len(os.sched_getaffinity(0))


def stand_back(processes: int) -> None:
    """Lower this process's priority for good, if it is one of a crowd."""
    if is_crowd(processes):
        # Where a sandbox forbids it, the crowd is only a worse neighbour.
        with contextlib.suppress(PermissionError):
            os.nice(NICE)
