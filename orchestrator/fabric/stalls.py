"""A process that holds a running fabric: noted, and killed when it goes on holding it.

Owns how long that may last. Who holds the fabric, `orchestrator.hosts.clock.timekeeper` says; what a death comes to is
`orchestrator.fabric.lifecycle`'s.
"""

import asyncio

from orchestrator.fabric.daemons import Daemons
from orchestrator.fabric.journal import Journal
from orchestrator.hosts.clock.timekeeper import Timekeeper

WATCH_POLL_S = 1.0
LATE_POLLS = 3
FENCE_WALL_S = 30.0
"""A process that has held the fabric this long is killed, so that the others can go on."""


async def watch(daemons: Daemons, time: Timekeeper, journal: Journal) -> None:
    """Until cancelled."""
    told, whole = "", True
    while True:
        asked_s = asyncio.get_running_loop().time()
        await asyncio.sleep(WATCH_POLL_S)
        if asyncio.get_running_loop().time() - asked_s > LATE_POLLS * WATCH_POLL_S:
            time.excuse()  # we were stopped, and perhaps all others with us
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
            await daemons.end(child)
