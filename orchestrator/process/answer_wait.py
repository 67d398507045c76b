"""How long to wait for a process that does not answer, by what the system says of it and not by the clock alone.

Owns the rule. A process that sleeps could have answered: it is given up after `SILENT_WALL_S`. One that is stopped,
computes or waits for the CPU could not: it is waited for up to a bound, which grows with the processes that share a
core. Of a process on another host we know only that it is silent. Time in which we ourselves were stopped does not
count: the answer may lie in our socket.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SILENT_WALL_S: Final = 10.0
"""A process that could have answered is given up after this."""
UNSEEN_WALL_S: Final = 30.0
"""A process on another host, of which nothing is known, is given up after this."""
BOUND_WALL_S = 60.0
"""The longest wait for any process is this plus `SHARE_WALL_S` for each process that shares a core."""
SHARE_WALL_S: Final = 1.0
TICK_WALL_S: Final = 0.25
"""How often to look, unless we ourselves are stopped."""
LOOKED_AT_MAX: Final = 8
"""How many of several late processes to look at: each look reads two files."""
_BUSY_SHARE: Final = 0.5
"""A process that computed, or waited for the CPU, for this share of a tick had no chance to answer."""
_NS_PER_S: Final = 10**9


@dataclass(frozen=True, slots=True)
class Sight:
    """What the system says of a process."""

    state: str
    """One letter, as in `ps`: R, S, D, T ..."""
    busy_ns: int
    """How long it has computed or waited for the CPU since its birth."""


def sight(pid: int) -> Sight | None:
    """What the system says of a process of this host; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        state, ticks = fields[0], int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return None
    try:
        ran, waited = Path(f"/proc/{pid}/schedstat").read_text().split()[:2]
        busy_ns = int(ran) + int(waited)
    except (OSError, ValueError):  # this kernel keeps no such account, but it counts what the process computed
        busy_ns = ticks * _NS_PER_S // os.sysconf("SC_CLK_TCK")
    return Sight(state, busy_ns)


def bound_s(processes: int) -> float:
    """The longest wait in wall seconds, when so many processes share the cores of this host."""
    return BOUND_WALL_S + SHARE_WALL_S * processes / len(os.sched_getaffinity(0))


class OwnTime:
    """Wall time in which we ran ourselves. Call `tick` every `TICK_WALL_S`; a longer pause counts as two of them."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        self._asked_s = time.monotonic()

    @property
    def since_s(self) -> float:
        """Wall time since the last tick."""
        return time.monotonic() - self._asked_s

    def tick(self) -> float:
        """Count the time since the last tick, and return it."""
        passed_s = min(self.since_s, 2 * TICK_WALL_S)
        self._asked_s = time.monotonic()
        self.passed_s += passed_s
        return passed_s


async def done_within(work: "asyncio.Future[Any]", wall_s: float) -> bool:
    """Wait for a future for `wall_s` of time in which we ran ourselves. Returns whether it is done."""
    own = OwnTime()
    while not (await asyncio.wait([work], timeout=min(TICK_WALL_S, wall_s)))[0]:
        own.tick()
        if own.passed_s >= wall_s:
            return work.done()
    return True


class AnswerWait:
    """One wait. Call `ended` again and again: it looks every `TICK_WALL_S`, and returns False in between."""

    def __init__(self, processes: int) -> None:
        """`processes`: how many the fabric has, for the bound."""
        self._processes = processes
        self._own = OwnTime()
        self._silent_s = self._unseen_s = 0.0
        self._known: dict[int, int] = {}
        self._last = "nothing is known of it"

    @property
    def due(self) -> bool:
        """Whether the next look is due."""
        return self._own.since_s >= TICK_WALL_S

    def heard(self) -> None:
        """A process has given a sign of life: start to count its silence anew."""
        self._silent_s = self._unseen_s = 0.0

    def ended(self, pids: Sequence[int | None]) -> bool:
        """Whether to give up these processes, of which at least one should do something.

        A process is its id here, or None if it runs on another host.
        """
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
        """What excuses a process for this tick; "" if nothing does."""
        seen = sight(pid)
        if seen is None:
            return ""
        before = self._known.get(pid)
        self._known[pid] = seen.busy_ns
        if seen.state in "Tt":
            return "it is stopped"
        busy = before is None or seen.busy_ns - before >= _BUSY_SHARE * passed_s * _NS_PER_S
        # The kernel counts a wait for the CPU only when it ends. Until then only the state shows it.
        return "it computes, or waits for the CPU or the disk" if busy or seen.state in "RD" else ""

    def why(self) -> str:
        """For messages: how long we waited, what was seen last, and the bound."""
        bound = bound_s(self._processes)
        return (
            f"{self._own.passed_s:.0f} s: {self._last} (who could answer has {SILENT_WALL_S:g} s, "
            f"nobody more than {bound:.0f} s here)"
        )
