"""When the daemons of a host are a crowd, and how far they then stand back.

Where hundreds of busy processes share a core, whoever looks at them gets a hundredth of it: the agent, a scrape, every
command. So each daemon of a crowd, once it runs, has the least priority of the usual policy. It loses nothing by that
while nobody else wants the CPU; a busy crowd weighs as much as a few other programs where somebody does; and fabric
time does not know of wall time. Before it runs it is in nobody's way: 304 daemons that stood back from their first
moment were ready after 117 s, beside other programs, instead of 18 s.
"""

import os
from typing import Final

CROWD_PER_CORE: Final = 32
"""More processes than that for each core are a crowd; the demonstration has 28 on two cores."""
NICE: Final = 19
"""By so much a crowd is nicer. Beside 608 busy daemons on two cores, a program got 0.03 of a core when they were nicer
by 5 than it, and 0.4 when they were nicer by 19."""


def is_crowd(processes: int) -> bool:
    """Whether so many are a crowd on this host."""
    return processes > CROWD_PER_CORE * len(os.sched_getaffinity(0))


def stand_back(processes: int) -> None:
    """Let others go first, for good, where this process is one of so many."""
    if is_crowd(processes):
        os.nice(NICE)
