"""Watches for a process that stops fabric time, notes it, and kills it when it does not go on.

Owns how long a process may stop fabric time. `orchestrator.hosts.clock.timekeeper` says which process stops it.
`orchestrator.fabric.lifecycle` handles the death.
"""

import asyncio
from typing import Final

from orchestrator.fabric.daemons import Daemons
from orchestrator.fabric.journal import Journal
from orchestrator.hosts.clock.timekeeper import Timekeeper
from orchestrator.process.answer_wait import bound_s, sight

WATCH_POLL_S = 1.0
LATE_POLLS = 3
FENCE_WALL_S = 30.0
"""A process that has stopped fabric time for this long, and could have gone on, is killed, so that the others can."""
_BUSY_SHARE: Final = 0.5
"""A process that computed, or waited for the CPU, for this share of the time between two looks could not go on."""
_NS_PER_S: Final = 10**9


class _Blame:
    """For how long one process has stopped fabric time although it could have gone on, or because it is stopped."""

    def __init__(self) -> None:
        self.blamed_s = 0.0
        self._busy_ns = 0

    def look(self, pid: int | None, passed_s: float) -> None:
        """Judge the time since the last look; `pid` None: nothing is known of the process."""
        seen = None if pid is None else sight(pid)
        if seen is None:
            self.blamed_s += passed_s
            return
        busy_ns, self._busy_ns = seen.busy_ns - self._busy_ns, seen.busy_ns
        # The kernel counts a wait for the CPU only when it ends. Until then only the state shows it.
        if seen.state in "Tt" or not (seen.state in "RD" or busy_ns >= _BUSY_SHARE * passed_s * _NS_PER_S):
            self.blamed_s += passed_s


async def watch(daemons: Daemons, time: Timekeeper, journal: Journal) -> None:
    """Watch until cancelled."""
    told, whole, blame = "", True, _Blame()
    clock = asyncio.get_running_loop().time
    while True:
        asked_s = clock()
        await asyncio.sleep(WATCH_POLL_S)
        passed_s = clock() - asked_s
        if passed_s > LATE_POLLS * WATCH_POLL_S:
            time.excuse()  # the host stopped this process, and perhaps the daemons with it: blame nobody
        was_whole, whole = whole, daemons.whole
        if whole and not was_whole:
            time.excuse()
        stalled = time.stalled()
        if stalled is None or not whole:
            told = ""
            continue
        slot, stood_s = stalled
        node = daemons.layout.topology.node_name(slot)
        if node != told:
            told, blame = node, _Blame()
            journal.note("stalled", time.now_ns(), node=node, pid=time.page.pid(slot))
        blame.look(daemons.pid_here(node), passed_s)
        bound_wall_s = max(FENCE_WALL_S, bound_s(len(daemons.layout.processes)))
        child = daemons.members[node].child
        if child is not None and (blame.blamed_s >= FENCE_WALL_S or stood_s >= bound_wall_s):
            journal.note("fenced", time.now_ns(), node=node, stood_s=round(stood_s))
            process = daemons.members[node].process
            for member in daemons.members.values():
                if member.process is process and member.child is not None:
                    member.child.words = (
                        f"its process had stopped fabric time for {stood_s:.0f} s, and was killed for that"
                    )
            await daemons.end_process(child)
