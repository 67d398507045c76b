"""How long a process that does not answer is waited for: by what the system says of it, not by the clock alone.

Owns the rule. A process that sleeps could have answered, and is silent after `SILENT_WALL_S`. One that is stopped, or
computes, or waits for the CPU, could not: it is waited for until the bound, which grows with the processes that share a
core. Of a process on another host nothing is known but that it is silent. Time in which we ourselves were stopped
counts for nothing: the answer may lie in our socket.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SILENT_WALL_S: Final = 10.0
"""A process that could have answered is given up after so long."""
UNSEEN_WALL_S: Final = 30.0
"""A process of which nothing is known, on another host."""
BOUND_WALL_S = 60.0
"""No process is waited for longer than this, and `SHARE_WALL_S` for each of the processes that share a core."""
SHARE_WALL_S: Final = 1.0
TICK_WALL_S: Final = 0.25
"""How often one looks, unless one is stopped oneself."""
LOOKED_AT_MAX: Final = 8
"""Of many late processes so many are looked at: each look reads two files."""
_BUSY_SHARE: Final = 0.5
"""A process that has computed, or waited for the CPU, for this share of a tick had no chance to answer."""
_NS_PER_S: Final = 10**9


@dataclass(frozen=True, slots=True)
class Sight:
    """What the system says of a process."""

    state: str
    """One letter, as in `ps`: R, S, D, T ..."""
    busy_ns: int
    """For how long it has computed or waited for the CPU since it was born."""


def sight(pid: int) -> Sight | None:
    """What is to be seen of a process of this host; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        state, ticks = fields[0], int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return None
    try:
        ran, waited = Path(f"/proc/{pid}/schedstat").read_text().split()[:2]
        busy_ns = int(ran) + int(waited)
    except (OSError, ValueError):  # a kernel that keeps no such account: what it computed is known all the same
        busy_ns = ticks * _NS_PER_S // os.sysconf("SC_CLK_TCK")
    return Sight(state, busy_ns)


def bound_s(processes: int) -> float:
    """Wall seconds after which nobody is waited for, where so many processes share the cores of this host."""
    return BOUND_WALL_S + SHARE_WALL_S * processes / len(os.sched_getaffinity(0))


class OwnTime:
    """Wall time in which we ran ourselves. Ask at least every `TICK_WALL_S`; a longer pause counts as two of them."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        self._asked_s = time.monotonic()

    @property
    def since_s(self) -> float:
        """Wall time since one asked last."""
        return time.monotonic() - self._asked_s

    def tick(self) -> float:
        """How much has passed since one asked last."""
        passed_s = min(self.since_s, 2 * TICK_WALL_S)
        self._asked_s = time.monotonic()
        self.passed_s += passed_s
        return passed_s


async def done_within(work: "asyncio.Future[Any]", wall_s: float) -> bool:
    """Wait for a future for so much time in which we ran ourselves; whether it is done."""
    own = OwnTime()
    while not (await asyncio.wait([work], timeout=min(TICK_WALL_S, wall_s)))[0]:
        own.tick()
        if own.passed_s >= wall_s:
            return work.done()
    return True


class AnswerWait:
    """One wait. Ask `ended` again and again: it looks every `TICK_WALL_S`, between two looks it says False."""

    def __init__(self, processes: int) -> None:
        """`processes`: how many the fabric has, for the bound."""
        self._processes = processes
        self._own = OwnTime()
        self._silent_s = self._unseen_s = 0.0
        self._known: dict[int, int] = {}
        self._last = "nothing is known of it"

    @property
    def due(self) -> bool:
        """Whether it is time for the next look."""
        return self._own.since_s >= TICK_WALL_S

    def heard(self) -> None:
        """It has given a sign of life: what it has been silent for is forgotten."""
        self._silent_s = self._unseen_s = 0.0

    def ended(self, pids: Sequence[int | None]) -> bool:
        """Whether to wait no longer for these processes, of which at least one is to do something; None: it is on
        another host."""
        if not self.due:
            return False
        passed_s = self._own.tick()
        found = [self._judged(pid, passed_s) for pid in pids[:LOOKED_AT_MAX] if pid is not None]
        if excused := [what for what in found if what]:
            self._last = excused[0]
        elif found:
            self._last = "it sleeps"
            self._silent_s += passed_s
        else:
            self._last = "it runs on another host"
            self._unseen_s += passed_s
        return (
            self._silent_s >= SILENT_WALL_S
            or self._unseen_s >= UNSEEN_WALL_S
            or self._own.passed_s >= bound_s(self._processes)
        )

    def _judged(self, pid: int, passed_s: float) -> str:
        """What excuses a process for this tick; "" when nothing does."""
        seen = sight(pid)
        if seen is None:
            return ""
        before = self._known.get(pid)
        self._known[pid] = seen.busy_ns
        if seen.state in "Tt":
            return "it is stopped"
        busy = before is None or seen.busy_ns - before >= _BUSY_SHARE * passed_s * _NS_PER_S
        # The kernel adds a wait for the CPU to its account when it ends: while it lasts, only the state shows it.
        return "it computes, or waits for the CPU or the disk" if busy or seen.state in "RD" else ""

    def why(self) -> str:
        """How long it was waited for, what was seen last, and the bound."""
        bound = bound_s(self._processes)
        return (
            f"{self._own.passed_s:.0f} s: {self._last} (who could answer has {SILENT_WALL_S:g} s, "
            f"nobody more than {bound:.0f} s here)"
        )
