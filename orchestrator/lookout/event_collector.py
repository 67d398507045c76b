"""Collects what happens in all nodes of a fabric into its event log, and answers for it at the agent's door.

Owns how often NICs are asked, which ones (those whose glance shows something new), and up to where the log is in order.
Switches are not asked: they tell of nothing. While the fabric sleeps nobody is asked anything. What a NIC has not told
when it dies is gone with it.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.glance import Head, head_of
from mrcfabric.units import NEVER, Instant
from orchestrator import bodies
from orchestrator.fabric import Fabric
from orchestrator.lookout.event_lines import Line, forgotten, of_agent, of_nic
from orchestrator.lookout.event_log import LIMIT_MAX, EventLog

PERIOD_WALL_S: Final = 1.0
"""How often NICs are looked at, whoever reads."""
WATCHED_PERIOD_WALL_S: Final = 0.25
"""The same while somebody waits for news."""
PAGE_EVENTS: Final = 512
"""Events that a NIC is asked for at once: few enough not to be heard in its data path."""
PAGES_MAX: Final = 4
"""Of one NIC in one turn; the rest waits for the next."""
WAIT_WALL_S_MAX: Final = 30.0


class EventCollector:
    """The log of one fabric. Run `serve` as a task."""

    def __init__(self, fabric: Fabric) -> None:
        self.log = EventLog(fabric.folder.events)
        self._fabric = fabric
        self._nics = list(fabric.topology.nic_names())
        self._seen = dict.fromkeys(self._nics, (0, 0))
        """Incarnation and number of the last event that was fetched."""
        self._told_of: float | None = None
        """The sleep of the fabric of which everything is known."""
        self._note = 0
        self._watchers = 0
        self._watched = asyncio.Event()
        self._news = asyncio.Condition()
        self._turn = asyncio.Lock()

    async def serve(self) -> None:
        """Collect again and again, until cancelled."""
        while True:
            await self.collect()
            await self._pause()

    async def collect(self) -> None:
        """Take in what is new; of a fabric that still sleeps as when it was asked last that is the agent's own."""
        async with self._turn:
            if self._take_notes() or self._told_of is None or self._told_of != self._fabric.time.rest_s:
                await self._collect()

    async def _collect(self) -> None:
        resting, until_ns = self._fabric.time.rest_s, self._fabric.now_ns()
        glances = await self._fabric.glances(self._nics)
        heads = {nic: head_of(glance) for nic, glance in glances.nodes.items() if glance is not None}
        told = await asyncio.gather(*(self._fetch(nic, head) for nic, head in heads.items()))
        # A glance is shared for a moment: it may be from before now, and even from before the fabric fell asleep.
        looked_ns = min((head.now_ns for head in heads.values()), default=NEVER)
        known_ns = min(told, default=NEVER)
        # Asleep before and after: nothing was on its way, and nothing is.
        at_rest = resting is not None and resting == self._fabric.time.rest_s and looked_ns >= until_ns
        whole = at_rest and known_ns == NEVER
        self._told_of = resting if whole else None
        # Even then a fault may lie ahead that is not told yet, and the fabric wakes for it.
        rest_ns = max(until_ns, self._fabric.time.page.fabric_front())
        if self.log.settle(rest_ns if whole else min(until_ns, looked_ns, known_ns)):
            async with self._news:
                self._news.notify_all()

    async def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`after` and `limit`, or `newest`: how many of the latest; `nodes` and `kinds`: none for all; `wait_s`: how
        long to wait for a line when there is none. See `EventLog`."""
        nodes, kinds = bodies.texts(body, "nodes"), bodies.texts(body, "kinds")
        for node in nodes or ():
            self._fabric.roster.member(node)
        await self.collect()
        newest = bodies.whole(body, "newest")
        if newest is not None:
            return self.log.newest(min(newest, LIMIT_MAX), nodes, kinds)
        after = bodies.whole(body, "after") or 0
        limit = min(bodies.whole(body, "limit", 1) or LIMIT_MAX, LIMIT_MAX)
        found = self.log.after(after, limit, nodes, kinds)
        if "wait_s" not in body or found["events"]:
            return found
        wait_s = bodies.seconds(body, "wait_s", WAIT_WALL_S_MAX, WAIT_WALL_S_MAX)
        with self._watching(), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s), self._news:
                while not found["events"]:
                    await self._news.wait()
                    found = self.log.after(found["last"], limit, nodes, kinds)
        return found

    # What is new.

    async def _fetch(self, nic: str, head: Head) -> Instant:
        """Put what a NIC has to tell; up to when that is all that there was. NEVER: all of it."""
        incarnation, number = self._seen[nic]
        if incarnation != head.incarnation:
            number = 0
        lines: list[Line] = []
        known_ns: Instant = NEVER
        try:
            for page in range(PAGES_MAX + 1):
                if number >= head.event:
                    break
                if page == PAGES_MAX:
                    known_ns = lines[-1]["at_ns"] - 1
                    break
                answer = await self._fabric.call(nic, "events", {"since": number, "limit": PAGE_EVENTS})
                number = answer["last"]
                wall_s = time.time()
                if answer["forgotten"]:
                    at_ns = answer["events"][0]["at_ns"] if answer["events"] else head.now_ns
                    lines.append(forgotten(nic, at_ns, wall_s, answer["forgotten"]))
                lines += [of_nic(nic, wall_s, event) for event in answer["events"]]
        except (NoAnswerError, RefusedError):
            pass  # it died, or hears nobody: the next turn knows
        self._seen[nic] = head.incarnation, number
        self.log.put(lines)
        return known_ns

    def _take_notes(self) -> int:
        """Put the notes that the agent has made; how many there were."""
        notes = self._fabric.journal.after(self._note)
        for note in notes:
            self._note = note["n"]
            never_was = note["kind"] == "healed" and self.log.withdraw(note["id"], note["at_ns"])
            if not never_was:
                self.log.put([of_agent(note)])
        return len(notes)

    # How often.

    async def _pause(self) -> None:
        if self._watchers:
            await asyncio.sleep(WATCHED_PERIOD_WALL_S)
            return
        self._watched.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PERIOD_WALL_S):
                await self._watched.wait()

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """Somebody waits for news."""
        self._watchers += 1
        self._watched.set()
        try:
            yield
        finally:
            self._watchers -= 1
