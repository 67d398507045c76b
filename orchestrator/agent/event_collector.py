"""Collects what happens in all nodes of a fabric into its event log, and answers for it at the agent's API.

Owns how often NICs are asked, which ones (those whose glance shows something new), and up to where the log is in order.
Switches are not asked: they tell of nothing. While the fabric sleeps nobody is asked twice. What a NIC has not told
when it dies is gone with it, and a line says since when. A NIC that does not answer holds the order up for
`SILENCE_WALL_S` at most; what it tells later stands later.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.glance import Glance, Head, head_of
from mrcfabric.units import Instant
from orchestrator.client import bodies
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.live.event_lines import end_of, forgotten, of_agent, of_nic, untold
from orchestrator.live.event_log import LIMIT_MAX, EventLog

PERIOD_WALL_S: Final = 1.0
"""How often NICs are looked at, whoever reads."""
WATCHED_PERIOD_WALL_S: Final = 0.25
"""The same while somebody waits for news."""
PAGE_EVENTS: Final = 512
"""Events that a NIC is asked for at once: few enough not to be heard in its data path."""
PAGES_MAX: Final = 4
"""Of one NIC in one turn; the rest waits for the next."""
WAIT_WALL_S_MAX: Final = 30.0
SILENCE_WALL_S: Final = 5.0
"""So long is the log held up for a NIC that does not answer: hung, overloaded, or cut off."""

FINISH_WALL_S: Final = 1.0
"""So long may the last look take when the fabric ends."""


@dataclass(slots=True)
class _Told:
    """What a NIC has told."""

    incarnation: int = 0
    number: int = 0
    """Of its last event that was fetched."""
    until_ns: Instant = 0
    """All that happened in it up to there has been put into the log, or is gone."""
    complete: bool = False
    """It had nothing more to tell when it was last asked."""
    silent_s: float | None = None
    """Since when it has not answered, monotonic; None: it has."""


class EventCollector:
    """The log of one fabric. Run `serve` as a task."""

    def __init__(self, fabric: LaunchedFabric) -> None:
        self.log = EventLog(fabric.folder.events)
        self._fabric = fabric
        self._nics = {nic: _Told() for nic in fabric.topology.nic_names()}
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
            if self._take_notes() or not self.is_whole:
                await self._collect()

    @property
    def is_whole(self) -> bool:
        """The fabric sleeps, and all that nodes have to tell is in the log."""
        return self._told_of is not None and self._told_of == self._fabric.time.rest_s

    async def _collect(self) -> None:
        resting, until_ns = self._fabric.time.rest_s, self._fabric.now_ns()
        glances = await self._fabric.glances(list(self._nics))
        # Before what NICs tell of a new life: what of the life before is not known.
        self._take_notes()
        asked = {nic: told for nic, told in self._nics.items() if nic not in glances.down}
        await asyncio.gather(*(self._fetch(nic, told, glances.nodes[nic]) for nic, told in asked.items()))
        # Asleep before and after: nothing was on its way, and nothing is. A glance is shared for a moment: it may be
        # from before now, and even from before the fabric fell asleep.
        at_rest = resting is not None and resting == self._fabric.time.rest_s
        behind = [told for told in asked.values() if not (at_rest and told.complete and told.until_ns >= until_ns)]
        self._told_of = resting if at_rest and not behind else None
        # No further than the furthest node even then: a fault may lie ahead for which the fabric is to wake.
        bound_ns = max(until_ns, self._fabric.time.page.fabric_front()) if at_rest else until_ns
        waited_s = time.monotonic() - SILENCE_WALL_S
        waited = (told.until_ns for told in behind if told.silent_s is None or told.silent_s > waited_s)
        await self._settle(min((bound_ns, *waited)))

    async def finish(self) -> None:
        """Take in what there is before the fabric ends; nobody is waited for any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_WALL_S):
                await self.collect()
        await self._settle(max(self._fabric.now_ns(), self._fabric.time.page.fabric_front()))

    async def _settle(self, until_ns: Instant) -> None:
        if self.log.settle(until_ns):
            async with self._news:
                self._news.notify_all()

    async def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`after` and `limit`, or `newest`: how many of the latest; `nodes` and `kinds`: none for all; `wait_s`: how
        long to wait for a line when there is none. See `EventLog`."""
        nodes, kinds = bodies.texts(body, "nodes"), bodies.texts(body, "kinds")
        for node in nodes or ():
            self._fabric.daemons.member(node)
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

    async def _fetch(self, nic: str, told: _Told, glance: Glance | None) -> None:
        """Put what a NIC has to tell, and remember up to when that is all that there was."""
        told.complete = False
        try:
            if glance is None:
                raise NoAnswerError(f"{nic} is silent")
            head = head_of(glance)
            if head.incarnation != told.incarnation:
                told.incarnation, told.number = head.incarnation, 0
            for _ in range(PAGES_MAX):
                if told.number >= head.event:
                    break
                told.until_ns = max(told.until_ns, await self._fetch_page(nic, told, head))
            told.silent_s = None
            if told.number >= head.event:
                told.complete, told.until_ns = True, max(told.until_ns, head.now_ns)
        except (NoAnswerError, RefusedError):  # it died, or hears nobody: the next turn knows
            told.silent_s = told.silent_s or time.monotonic()

    async def _fetch_page(self, nic: str, told: _Told, head: Head) -> Instant:
        """The next events; up to when they are all, as far as they tell it themselves. Raises NoAnswerError and
        RefusedError."""
        answer = await self._fabric.call(nic, "events", {"since": told.number, "limit": PAGE_EVENTS})
        if self._fabric.daemons.member(nic).incarnation != told.incarnation:
            raise RefusedError(f"{nic} has been started again meanwhile")
        told.number, events, wall_s = answer["last"], answer["events"], time.time()
        if answer["forgotten"]:
            at_ns = events[0]["at_ns"] if events else head.now_ns
            self.log.put([forgotten(nic, at_ns, wall_s, answer["forgotten"])])
        self.log.put(of_nic(nic, wall_s, event) for event in events)
        return events[-1]["at_ns"] - 1 if events else 0

    def _take_notes(self) -> int:
        """Put the notes that the agent has made; how many there were."""
        notes = self._fabric.journal.after(self._note)
        for note in notes:
            self._note = note["n"]
            never_was = note["kind"] == "healed" and self.log.withdraw(note["id"], note["at_ns"])
            if not never_was:
                self.log.put([of_agent(note)])
            if note["kind"] == "fault" and (end := end_of(note)) is not None:
                self.log.put([end])
            if note["kind"] == "died" and (told := self._nics.get(note["node"])) is not None:
                self._take_death(note, told)
        return len(notes)

    def _take_death(self, note: Mapping[str, Any], told: _Told) -> None:
        """What a NIC that has died had not told is gone."""
        if told.until_ns < note["at_ns"]:
            self.log.put([untold(note["node"], note["at_ns"], note["wall_s"], told.until_ns)])
            told.until_ns = note["at_ns"]

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
