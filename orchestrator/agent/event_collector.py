"""Collects what happens in all nodes of a fabric into its event log, and serves the log in the agent's API.

Owns how often nodes are asked, which of them (those whose glance shows something new), and up to which instant the log
is in order. Switches are asked where they have events to report: all where they pause or route, T0s where they hash.
While the fabric sleeps, nobody is asked twice. When a node dies, the events that it had not reported are lost, and a
line says since when. A node that does not answer delays the log by at most `SILENCE_WALL_S`; what it reports later is
appended out of order.
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
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.client import bodies
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.live.event_lines import end_of, forgotten, of_agent, of_nic, sections_of, untold
from orchestrator.live.event_log import LIMIT_MAX, EventLog
from orchestrator.planning.abilities import hashes, lossless, routes, transport_of

PERIOD_WALL_S: Final = 1.0
"""How often nodes are looked at while nobody waits for news."""
WATCHED_PERIOD_WALL_S: Final = 0.25
"""The same while somebody waits for news."""
PAGE_EVENTS: Final = 512
"""How many events a node is asked for at once: few enough not to disturb its data path."""
PAGES_MAX: Final = 4
"""How many such pages one node is asked for in one turn; the next turn continues."""
WAIT_WALL_S_MAX: Final = 30.0
SILENCE_WALL_S: Final = 5.0
"""How long the log waits for a node that does not answer because it hangs, is overloaded or is cut off."""

FINISH_WALL_S: Final = 1.0
"""How long the last turn may take when the fabric ends."""


@dataclass(slots=True)
class _Told:
    """What a node has reported."""

    incarnation: int = 0
    number: int = 0
    """The number of its last event that was fetched."""
    until_ns: Instant = 0
    """Everything that happened in it up to this instant is in the log, or is lost."""
    complete: bool = False
    """Whether it had nothing more to report when it was last asked."""
    silent_s: float | None = None
    """Since when it has not answered, monotonic; None: it has."""


class EventCollector:
    """Collects the event log of one fabric. Run `serve` as a task."""

    def __init__(self, fabric: LaunchedFabric) -> None:
        self.log = EventLog(fabric.folder.events)
        self._fabric = fabric
        self._sections = sections_of(transport_of(fabric.topology))
        self._nodes = {node: _Told() for node in _tellers(fabric.topology)}
        self._peers = {node: [end.peer for end in fabric.topology.ports(node)] for node in self._nodes}
        self._told_of: float | None = None
        """The sleep of the fabric during which everything was collected (`Timekeeper.rest_s`); None: none."""
        self._note = 0
        self._watchers = 0
        self._watched = asyncio.Event()
        self._news = asyncio.Condition()
        self._turn = asyncio.Lock()

    async def serve(self) -> None:
        """Collect repeatedly until cancelled."""
        while True:
            await self.collect()
            await self._pause()

    async def collect(self) -> None:
        """Collect what is new. If the fabric has slept since all were asked, only the agent's own notes can be."""
        async with self._turn:
            if self._take_notes() or not self.is_whole:
                await self._collect()

    @property
    def is_whole(self) -> bool:
        """Whether the fabric sleeps and everything that its nodes have to report is in the log."""
        return self._told_of is not None and self._told_of == self._fabric.time.rest_s

    async def _collect(self) -> None:
        resting, until_ns = self._fabric.time.rest_s, self._fabric.now_ns()
        glances = await self._fabric.glances(list(self._nodes))
        # Notes of deaths go in before what nodes report of a new life: they say what of the old one is unknown.
        self._take_notes()
        asked = {node: told for node, told in self._nodes.items() if node not in glances.down}
        await asyncio.gather(*(self._fetch(node, told, glances.nodes[node]) for node, told in asked.items()))
        # If the fabric slept before and after, nothing was or is on its way. But a glance may be shared with an earlier
        # look, so it may be older than this turn, and even older than the sleep.
        # from before now, and even from before the fabric fell asleep.
        at_rest = resting is not None and resting == self._fabric.time.rest_s
        behind = [told for told in asked.values() if not (at_rest and told.complete and told.until_ns >= until_ns)]
        self._told_of = resting if at_rest and not behind else None
        # Even at rest no further than the furthest node: the fabric may have to wake for a fault that lies ahead.
        bound_ns = max(until_ns, self._fabric.time.front_ns()) if at_rest else until_ns
        waited_s = time.monotonic() - SILENCE_WALL_S
        waited = (told.until_ns for told in behind if told.silent_s is None or told.silent_s > waited_s)
        await self._settle(min((bound_ns, *waited)))

    async def finish(self) -> None:
        """Collect what there is before the fabric ends, without waiting for any node's missing events."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_WALL_S):
                await self.collect()
        await self._settle(max(self._fabric.now_ns(), self._fabric.time.front_ns()))

    async def _settle(self, until_ns: Instant) -> None:
        if self.log.settle(until_ns):
            async with self._news:
                self._news.notify_all()

    async def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request for lines of the log.

        `after` and `limit` select lines, or `newest`: how many of the latest. `nodes` and `kinds` narrow them (missing:
        all). `wait_s`: how long to wait for a line when there is none. See `EventLog`.
        """
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

    # Fetching.

    async def _fetch(self, node: str, told: _Told, glance: Glance | None) -> None:
        """Fetch what a node has to report, and remember up to which instant that is complete."""
        told.complete = False
        try:
            if glance is None:
                raise NoAnswerError(f"{node} is silent")
            head = head_of(glance)
            if head.incarnation != told.incarnation:
                told.incarnation, told.number = head.incarnation, 0
            for _ in range(PAGES_MAX):
                if told.number >= head.event:
                    break
                told.until_ns = max(told.until_ns, await self._fetch_page(node, told, head))
            told.silent_s = None
            if told.number >= head.event:
                told.complete, told.until_ns = True, max(told.until_ns, head.now_ns)
        except (NoAnswerError, RefusedError):  # it died or hears nothing; the next turn finds out
            told.silent_s = told.silent_s or time.monotonic()

    async def _fetch_page(self, node: str, told: _Told, head: Head) -> Instant:
        """Fetch a node's next events. Returns the instant up to which these are known to be complete, 0 without any.

        Raises NoAnswerError and RefusedError.
        """
        answer = await self._fabric.call(node, "events", {"since": told.number, "limit": PAGE_EVENTS})
        if self._fabric.daemons.member(node).incarnation != told.incarnation:
            raise RefusedError(f"{node} has been started again meanwhile")
        told.number, events, wall_s = answer["last"], answer["events"], time.time()
        if answer["forgotten"]:
            at_ns = events[0]["at_ns"] if events else head.now_ns
            self.log.put([forgotten(node, at_ns, wall_s, answer["forgotten"])])
        self.log.put(of_nic(node, wall_s, event, self._sections, self._peers[node]) for event in events)
        return events[-1]["at_ns"] - 1 if events else 0

    def _take_notes(self) -> int:
        """Put the agent's new notes into the log; returns how many there were."""
        self._fabric.lifecycle.note_returns()
        notes = self._fabric.journal.after(self._note)
        for note in notes:
            self._note = note["n"]
            never_was = note["kind"] == "healed" and self.log.withdraw(note["id"], note["at_ns"])
            if not never_was:
                self.log.put([of_agent(note)])
            if note["kind"] == "fault" and (end := end_of(note)) is not None:
                self.log.put([end])
            if note["kind"] == "died" and (told := self._nodes.get(note["node"])) is not None:
                self._take_death(note, told)
        return len(notes)

    def _take_death(self, note: Mapping[str, Any], told: _Told) -> None:
        """Note which events of a node were lost because it died before it reported them."""
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
        """Count a reader that waits for news, for the length of a block."""
        self._watchers += 1
        self._watched.set()
        try:
            yield
        finally:
            self._watchers -= 1


def _tellers(topology: Topology) -> list[str]:
    """The nodes that report events: NICs, all switches that pause, grant credit or route, and T0s that hash."""
    if lossless(topology) or routes(topology):
        return list(topology.node_names())
    hashing = [name for name in topology.switch_names() if topology.parse_node(name).tier == "t0"]
    return [*topology.nic_names(), *(hashing if hashes(topology) else ())]
