"""Watches for a process that stops fabric time, notes it, and kills it when it does not go on.

Owns how long a process may stop fabric time. `orchestrator.hosts.clock.timekeeper` says which process stops it.
`orchestrator.fabric.lifecycle` handles the death.
"""

import asyncio

from orchestrator.fabric.daemons import Daemons
from orchestrator.fabric.journal import Journal
from orchestrator.hosts.clock.timekeeper import Timekeeper

WATCH_POLL_S = 1.0
LATE_POLLS = 3
FENCE_WALL_S = 30.0
"""A process that has stopped fabric time for this long is killed, so that the others can go on."""


async def watch(daemons: Daemons, time: Timekeeper, journal: Journal) -> None:
    """Watch until cancelled."""
    told, whole = "", True
    while True:
        asked_s = asyncio.get_running_loop().time()
        await asyncio.sleep(WATCH_POLL_S)
        if asyncio.get_running_loop().time() - asked_s > LATE_POLLS * WATCH_POLL_S:
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
            told = node
            journal.note("stalled", time.now_ns(), node=node, pid=time.page.pid(slot))
        child = daemons.members[node].child
        if stood_s >= FENCE_WALL_S and child is not None:
            journal.note("fenced", time.now_ns(), node=node, stood_s=round(stood_s))
            await daemons.end_process(child)
