"""The agent's hand on fabric time: when it runs, when it sleeps, who binds it, and how fast it went.

Owns the clock page and the doorbells of one host. Nobody else puts the fabric to sleep or wakes it, declares a node
dead, or holds the fabric for one that is being started. How the daemons obey is `mrcfabric.runner`'s.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from mrcfabric import tally
from mrcfabric.clock import ClockPage, PageState, SlotState
from mrcfabric.units import NEVER, NS_PER_S, Instant

IDLE_POLL_S = 0.02
"""How often a running fabric is asked whether anything is pending."""
ASLEEP_POLL_S = 0.1
"""How often a sleeping one is asked: the cure for a wake-up that got lost."""
LEAD_WALL_S = 0.25
"""How long a command may take to reach its daemon: the fabric time of that long, at the pace of late, is the lead."""
LEAD_HOPS_MIN = 50
IDLE_HOPS_PER_S = 2000
"""What an idle fabric is taken to do when it is woken, until it has been seen to be faster."""
PACE_WALL_S = 0.02
"""Pace is measured over at least this long."""
STALL_WALL_S = 5.0
STALL_HOPS = 20
"""A running fabric whose time has stood still for both, hops at the asked pace, has a stalled process."""


class Timekeeper:
    """The page, a doorbell per process, and one for the agent. Run `serve` as a task."""

    def __init__(
        self,
        peers: Sequence[Sequence[tuple[int, int]]],
        doorbells: int,
        hop_ns: int,
        dilation: float,
        limit_ns: Instant = NEVER,
    ) -> None:
        """`peers` as for `ClockPage.create`; `doorbells` processes; `hop_ns` the shortest link delay.

        `dilation` is the fastest pace in wall seconds per fabric second, 0 for as fast as it goes; at `limit_ns`
        fabric time stands still until `limit` says otherwise.
        """
        self.page = ClockPage.create(peers, dilation)
        self.page.set_limit(limit_ns)
        self.limit_ns = limit_ns
        """How far time may go; NEVER: for good. What `still` does to the page is none of it."""
        self._stills = 0
        self._still_s: tuple[float, float] = (0.0, 0.0)
        """When time stood still for a look last: from, to; monotonic."""
        self.doorbells = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(doorbells)]
        self.agent_doorbell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.dilation_nominal = dilation
        self._hop_ns = hop_ns
        self._awaited_ns: Instant = 0
        self._run_since: float | None = None
        self._run_wall_s = 0.0
        self._reached_ns: Instant = 0
        self._pace_ns_per_s = 0.0
        self._pace_ns_per_s_max = float(IDLE_HOPS_PER_S * hop_ns)
        self._pace_mark: tuple[float, Instant] = (time.monotonic(), 0)
        self._moved: tuple[float, Instant] = (time.monotonic(), 0)
        self._ordered: dict[int, tuple[int, Instant | None]] = {}
        """Slot -> (number of the latest order, where it is held; None: dead)."""

    def close(self) -> None:
        """Unmap the page and close the doorbells; the daemons have their own."""
        self.page.close()
        for fd in (*self.doorbells, self.agent_doorbell):
            os.close(fd)

    # What time it is.

    def now_ns(self) -> Instant:
        """The instant every living node has reached; never goes back."""
        self._reached_ns = max(self._reached_ns, self.page.fabric_now())
        return self._reached_ns

    def lead_ns(self) -> int:
        """How far ahead to stamp a command so that it is not late when it arrives.

        A sleeping fabric is expected to go as fast as it ever went once the command has woken it.
        """
        pace_ns_per_s = self._pace_ns_per_s_max if self.page.asleep else self._pace_ns_per_s
        return max(LEAD_HOPS_MIN * self._hop_ns, int(pace_ns_per_s * LEAD_WALL_S))

    def soon_ns(self) -> Instant:
        """The instant for a command that is sent now."""
        return max(self.page.fabric_front(), self._reached_ns) + self.lead_ns()

    def record(self) -> dict[str, Any]:
        """Fabric time reached, wall time it ran, and the effective dilation (None before time has moved)."""
        fabric_ns = self.now_ns()
        wall_s = self.run_wall_s()
        return {
            "fabric_ns": fabric_ns,
            "run_wall_s": wall_s,
            "dilation_nominal": self.dilation_nominal,
            "dilation_effective": wall_s * NS_PER_S / fabric_ns if fabric_ns else None,
        }

    def run_wall_s(self) -> float:
        """Wall time the fabric has been awake."""
        since = self._run_since
        return self._run_wall_s + (time.monotonic() - since if since is not None else 0.0)

    @property
    def rest_s(self) -> float | None:
        """Tells this sleep of the fabric from every other: the wall time it had been awake; None while it is awake."""
        return self.run_wall_s() if self.page.asleep else None

    def stalled(self) -> tuple[int, float] | None:
        """(slot that holds a running fabric, wall seconds so far), or None while time goes on or a node boots."""
        stood_s = time.monotonic() - self._moved[0]
        limit_s = max(STALL_WALL_S, STALL_HOPS * self._hop_ns * self.dilation_nominal / NS_PER_S)
        if self.page.asleep or stood_s < limit_s or self.standing or self._stills:
            return None
        states = [self.page.slot_state(slot) for slot in range(self.page.nodes)]
        if SlotState.BOOTING in states:
            return None
        # Whoever is furthest behind can always move: its neighbours are ahead of it.
        alive = [slot for slot, state in enumerate(states) if state == SlotState.ALIVE]
        return (min(alive, key=self.page.horizon), stood_s) if alive else None

    def excuse(self) -> None:
        """Nobody is to blame for how long time has stood still: the hosts did not hear each other."""
        self._moved = (time.monotonic(), self._moved[1])

    # Up to where.

    def limit(self, at_ns: Instant | None) -> Instant:
        """Let everything up to and including `at_ns` happen, and nothing after it; None: let time go on for good.

        Returns the instant that binds: where the furthest node already is, when that is later. A node in the middle of
        a step may end it beyond that; none ends one beyond `soon_ns`.
        """
        self._moved = (time.monotonic(), self.now_ns())
        if at_ns is None:
            # It stood still, or went step by step; what it was seen to do then says nothing about now.
            self._pace_mark, self._pace_ns_per_s = self._moved, self._pace_ns_per_s_max
        self.limit_ns = NEVER if at_ns is None else max(at_ns, self.page.fabric_front())
        if not self._stills:
            self.page.set_limit(self.limit_ns)
            self.ring()
        return self.limit_ns

    @property
    def standing(self) -> bool:
        """Whether every living node has come to the limit."""
        return self.page.fabric_now() >= self.limit_ns

    @contextlib.asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Time stands still in the block, for somebody who looks at a crowd: its daemons answer, and do nothing else.

        That is seen by the wall clock alone. Blocks may overlap. Who looks again and again gets half of wall time: a
        block waits until time has gone on for as long as it stood still before.
        """
        if not self._stills:
            began_s, ended_s = self._still_s
            await asyncio.sleep(max(0.0, 2 * ended_s - began_s - time.monotonic()))
        self._stills += 1
        if self._stills == 1:
            began_s = time.monotonic()
            self._still_s = began_s, began_s
            # Where the last node is: whoever is further stands where it is.
            self.page.set_limit(min(self.limit_ns, self.page.fabric_now()))
        try:
            yield
        finally:
            self._stills -= 1
            if not self._stills:
                self._still_s = self._still_s[0], time.monotonic()
                self._pace_mark = self._moved = (time.monotonic(), self.now_ns())
                self.page.set_limit(self.limit_ns)
                self.ring()

    # Run and sleep.

    async def serve(self) -> None:
        """Sleep when nothing is pending, wake when somebody asks; until cancelled."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self.agent_doorbell, self._asked)
        try:
            while True:
                await asyncio.sleep(ASLEEP_POLL_S if self.page.asleep else IDLE_POLL_S)
                self._look()
        finally:
            loop.remove_reader(self.agent_doorbell)

    def wake(self) -> None:
        """Let fabric time go on."""
        if self.page.asleep:
            now = time.monotonic()
            self._run_since = now
            self._pace_mark = self._moved = (now, self.now_ns())
            self._pace_ns_per_s = self._pace_ns_per_s_max
            self.page.wake()
        self.ring()

    def await_instant(self, at_ns: Instant) -> None:
        """Let the fabric sleep only when every living node has come to this instant, whatever was awaited before.

        What lies ahead need not be pending with any daemon, nor with all: a second fault on a link tells nobody
        anything, and whoever has been told of the first may be some hops ahead of the others.
        """
        self._awaited_ns = at_ns
        if not self._idle():
            self.wake()

    def _idle(self) -> bool:
        return self.page.all_idle(self._awaited_ns)

    def ring(self) -> None:
        """Make every process look at the page."""
        for doorbell in self.doorbells:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_write(doorbell, 1)

    def _asked(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.agent_doorbell)
        if self.page.asleep:
            self.wake()

    def _look(self) -> None:
        self._insist()
        idle = self._idle()
        if self.page.asleep:
            if not idle:
                self.wake()
            return
        self._measure()
        # A frame may move from one node to the next while we read: twice, and once more after it sleeps.
        if idle and self._idle():
            self.page.sleep()
            if self._run_since is not None:
                self._run_wall_s += time.monotonic() - self._run_since
                self._run_since = None
            if not self._idle():
                self.wake()

    def _measure(self) -> None:
        now, reached = time.monotonic(), self.now_ns()
        if reached != self._moved[1]:
            self._moved = (now, reached)
        since, fabric_ns = self._pace_mark
        if now - since >= PACE_WALL_S:
            if reached > fabric_ns:  # else it waits for somebody, and will go on as fast as before
                self._pace_ns_per_s = (reached - fabric_ns) / (now - since)
                self._pace_ns_per_s_max = max(self._pace_ns_per_s_max, self._pace_ns_per_s)
            self._pace_mark = (now, reached)

    # Births and deaths.

    def hold_for(self, slot: int, horizon_ns: Instant) -> None:
        """A node is to be (re)started: its neighbours go no further than one hop past `horizon_ns` until it is."""
        self._ordered[slot] = self.page.mark_booting(slot, horizon_ns), horizon_ns
        self.ring()

    def bury(self, slot: int) -> None:
        """A node is gone; nobody waits for it."""
        self._ordered[slot] = self.page.mark_dead(slot), None
        self.ring()

    def _insist(self) -> None:
        """Order again what a relay has overwritten: it may stand between its look at a slot and what it writes."""
        for slot, (orders, held_ns) in self._ordered.items():
            if self.page.orders(slot) < orders:
                self.bury(slot) if held_ns is None else self.hold_for(slot, held_ns)

    def has_reached(self, reached: dict[int, list[int]]) -> None:
        """Slot -> what a node had reached on another host when its process died (`ClockPage.reached`), and counted.

        Its last news may come later than the order that it is dead, and is then dropped: what they would have told its
        neighbours they learn with the order.
        """
        for slot, last in reached.items():
            self.page.set_tally(slot, last[-tally.WORDS :])
            if self.is_alive(slot):
                self.page.set_reached(slot, last[: -tally.WORDS])

    def is_alive(self, slot: int) -> bool:
        """Whether the node's daemon has bound its sockets."""
        return self.page.slot_state(slot) == SlotState.ALIVE

    def all_alive(self) -> bool:
        """Whether every node's daemon has."""
        return all(map(self.is_alive, range(self.page.nodes)))

    @property
    def state(self) -> str:
        """`run` or `sleep`."""
        return PageState(self.page.state).name.lower()
