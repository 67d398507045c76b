"""The agent's control of fabric time: when it runs, when it sleeps, how far it may go, and how fast it went.

Owns the clock page and the doorbells of one host. Only this module puts the fabric to sleep, wakes it, declares a node
dead, and holds the fabric for a node that is being started. `mrcfabric.runner` is how a daemon follows the page.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from mrcfabric import tally
from mrcfabric.clock import ClockPage, PageState, SlotState
from mrcfabric.units import NEVER, NS_PER_S, Instant

IDLE_POLL_S = 0.02
"""How often the agent looks whether a running fabric has anything pending."""
ASLEEP_POLL_S = 0.1
"""How often it looks at a sleeping one, in case a wake-up was lost."""
LEAD_WALL_S = 0.25
"""How long a command may take to its daemon. The lead is the fabric time of that long, at the latest pace."""
LEAD_HOPS_MIN = 50
IDLE_HOPS_PER_S = 2000
"""The assumed pace of an idle fabric once it is woken, until a faster one has been measured; less if it is slowed down
to less: twice that, as it may have to catch up."""
PACE_WALL_S = 0.02
"""Pace is measured over at least this long."""
STALL_WALL_S = 5.0
BEFORE_WALL_S = 1.0
"""How long fabric time waits for daemons that are being told of an instant."""
STALL_HOPS = 20
"""A running fabric has a stalled process if its time has stood still for both; hops are at the nominal pace."""


class Timekeeper:
    """The clock page, a doorbell per process, and one for the agent. Run `serve` as a task."""

    def __init__(
        self,
        peers: Sequence[Sequence[tuple[int, int]]],
        doorbells: int,
        hops_ns: tuple[int, int],
        dilation: float,
        limit_ns: Instant = NEVER,
        *,
        several: bool = False,
    ) -> None:
        """`peers` as for `ClockPage.create`; `doorbells` processes; `hops_ns` the least and the longest link delay.

        `dilation` is the fastest pace, in wall seconds per fabric second; 0 is as fast as the machine can. Fabric time
        stands still at `limit_ns` until `limit` moves it. `several`: other hosts hear of a limit some time later.
        """
        self.page = ClockPage.create(peers, dilation)
        self.page.set_limit(limit_ns)
        self.limit_ns = limit_ns
        """How far time may go; NEVER: without end. `still` changes the limit in the page, but not this."""
        self._still_ns: Instant = NEVER
        """Where `still` holds fabric time."""
        self._before_ns: dict[object, Instant] = {}
        """Where `before` holds it."""
        self._stills = 0
        self._still_s: tuple[float, float] = (0.0, 0.0)
        """The latest time for which `still` held fabric time: begin, end; monotonic."""
        self.doorbells = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(doorbells)]
        self.agent_doorbell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.dilation_nominal = dilation
        self._hop_ns, longest_ns = hops_ns
        self._least_lead_ns = LEAD_HOPS_MIN * self._hop_ns + longest_ns
        self._several = several
        self._awaited_ns: Instant = 0
        self._run_since: float | None = None
        self._run_wall_s = 0.0
        self._reached_ns: Instant = 0
        self._front_ns: Instant = 0
        self._pace_ns_per_s = 0.0
        self._pace_ns_per_s_max = float(IDLE_HOPS_PER_S * self._hop_ns)
        if dilation:
            self._pace_ns_per_s_max = min(self._pace_ns_per_s_max, 2 * NS_PER_S / dilation)
        self._pace_mark: tuple[float, Instant] = (time.monotonic(), 0)
        self._moved: tuple[float, Instant] = (time.monotonic(), 0)
        self._ordered: dict[int, tuple[int, Instant | None]] = {}
        """Slot -> (number of the latest order, the horizon at which it holds the node; None: dead)."""
        self.on_look: Callable[[], None] = lambda: None
        """Called several times a second while `serve` runs."""

    def close(self) -> None:
        """Unmap the page and close the agent's doorbells; daemons have copies."""
        self.page.close()
        for fd in (*self.doorbells, self.agent_doorbell):
            os.close(fd)

    # What time it is.

    def now_ns(self) -> Instant:
        """The instant that every living node has reached. It never goes back."""
        self._reached_ns = max(self._reached_ns, self.page.fabric_now())
        return self._reached_ns

    def front_ns(self) -> Instant:
        """The latest instant that any node has reached. It never goes back: who was in front may have died."""
        self._front_ns = max(self._front_ns, self.page.fabric_front(), self._reached_ns)
        return self._front_ns

    def lead_ns(self) -> int:
        """How far ahead to stamp a command so that it is not late when it arrives, in ns.

        For a sleeping fabric this assumes the fastest pace ever measured once the command has woken it.
        """
        pace_ns_per_s = self._pace_ns_per_s_max if self.page.asleep else self._pace_ns_per_s
        return max(LEAD_HOPS_MIN * self._hop_ns, int(pace_ns_per_s * LEAD_WALL_S))

    def soon_ns(self) -> Instant:
        """The instant for a command that is sent now."""
        return self.front_ns() + self.lead_ns()

    def next_ns(self) -> Instant:
        """The instant for what daemons are told from now on while `before` keeps fabric time from it.

        No node gets beyond it with the step that it is in, so the pace does not matter: a fabric that was fast while it
        was idle takes many seconds to `soon_ns` once it has much to do. Other hosts hear of the limit later, but while
        they sleep not after they are woken.
        """
        return self.front_ns() + (self._least_lead_ns if self.page.asleep or not self._several else self.lead_ns())

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
        """Identifies this sleep: the wall time that the fabric had been awake when it began; None while it is awake."""
        return self.run_wall_s() if self.page.asleep else None

    def stalled(self) -> tuple[int, float] | None:
        """(slot that holds a running fabric, wall seconds so far); None while time goes on or a node boots."""
        stood_s = time.monotonic() - self._moved[0]
        limit_s = max(STALL_WALL_S, STALL_HOPS * self._hop_ns * self.dilation_nominal / NS_PER_S)
        if self.page.asleep or stood_s < limit_s or self.standing or self._stills:
            return None
        states = [self.page.slot_state(slot) for slot in range(self.page.nodes)]
        if SlotState.BOOTING in states:
            return None
        # The node furthest behind can always move, since its neighbours are ahead of it: so it is the stalled one.
        alive = [slot for slot, state in enumerate(states) if state == SlotState.ALIVE]
        return (min(alive, key=self.page.horizon), stood_s) if alive else None

    def excuse(self) -> None:
        """Count anew how long time stands still: the hosts did not hear each other, and no process is to blame."""
        self._moved = (time.monotonic(), self._moved[1])

    # The limit.

    def limit(self, at_ns: Instant | None) -> Instant:
        """Let everything up to and including `at_ns` happen, and nothing after it. None: let time go on without end.

        Returns the limit in force. It is later than `at_ns` where the furthest node already is beyond `at_ns`. A node
        in the middle of a step may end it beyond the limit, but not beyond `soon_ns`.
        """
        self._moved = (time.monotonic(), self.now_ns())
        if at_ns is None:
            # Fabric time stood still or went in steps, so the pace measured meanwhile says nothing.
            self._pace_mark, self._pace_ns_per_s = self._moved, self._pace_ns_per_s_max
        self.limit_ns = NEVER if at_ns is None else max(at_ns, self.front_ns())
        self._set_limit()
        if not self._stills:
            self.ring()
        return self.limit_ns

    @property
    def standing(self) -> bool:
        """Whether every living node has reached the limit."""
        return self.page.fabric_now() >= self.limit_ns

    @contextlib.asynccontextmanager
    async def still(self) -> AsyncIterator[None]:
        """Hold fabric time in the block, so that the daemons of a large fabric only answer a reader.

        The wall clock alone shows this. Blocks may overlap. A reader who does this again and again gets half of the
        wall time: a block waits until time has gone on for as long as it stood still before.
        """
        if not self._stills:
            began_s, ended_s = self._still_s
            await asyncio.sleep(max(0.0, 2 * ended_s - began_s - time.monotonic()))
        self._stills += 1
        if self._stills == 1:
            began_s = time.monotonic()
            self._still_s = began_s, began_s
            # The limit is where the last node is. A node that is further stays where it is.
            self._still_ns = self.page.fabric_now()
            self._set_limit()
        try:
            yield
        finally:
            self._stills -= 1
            if not self._stills:
                self._still_s = self._still_s[0], time.monotonic()
                self._pace_mark = self._moved = (time.monotonic(), self.now_ns())
                self._still_ns = NEVER
                self._set_limit()

    @contextlib.contextmanager
    def before(self, at_ns: Instant | None) -> Iterator[Instant]:
        """Keep fabric time before an instant in the block, while daemons are told what is to happen then; yields it.

        None: `next_ns`. Not for longer than `BEFORE_WALL_S`: a daemon that hears
        nothing must not hold the others.
        """
        block = object()
        instant = self.next_ns() if at_ns is None else at_ns
        self._hold_before(block, instant)
        # This process may have stood still since it chose the instant.
        while at_ns is None and self.front_ns() >= instant:
            instant = self.next_ns()
            self._hold_before(block, instant)
        lift = asyncio.get_running_loop().call_later(BEFORE_WALL_S, self._lift, block)
        try:
            yield instant
        finally:
            lift.cancel()
            self._lift(block)

    def _hold_before(self, block: object, at_ns: Instant) -> None:
        """Hold fabric time before an instant until `block` is lifted."""
        known = block in self._before_ns
        self._before_ns[block] = max(0, at_ns - 1)
        if known or self.page.limit >= at_ns:
            self._set_limit()

    def _lift(self, block: object) -> None:
        if self._before_ns.pop(block, None) is not None:
            self._set_limit()

    def _set_limit(self) -> None:
        before_ns = self.page.limit
        self.page.set_limit(min(self.limit_ns, self._still_ns, *self._before_ns.values()))
        if self.page.limit > before_ns:  # nobody who sleeps need wake for a lower one
            self.ring()

    # Run and sleep.

    async def serve(self) -> None:
        """Put the fabric to sleep when nothing is pending, wake it when a daemon asks; until cancelled."""
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
        """Let the fabric sleep only when every living node has reached this instant, whatever was awaited before.

        A coming event need not be pending with all daemons, or with any: a second fault on a link sends no command, and
        a daemon that has been told of the first fault may be some hops ahead of the others.
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
        self.on_look()
        idle = self._idle()
        if self.page.asleep:
            if not idle:
                self.wake()
            return
        self._measure()
        # A frame may move from one node to the next while we read: so look twice, and once more after it sleeps.
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
            if reached > fabric_ns:  # else it waits for something, and will then go on as fast as before
                self._pace_ns_per_s = (reached - fabric_ns) / (now - since)
                self._pace_ns_per_s_max = max(self._pace_ns_per_s_max, self._pace_ns_per_s)
            self._pace_mark = (now, reached)

    # Births and deaths.

    def hold_for(self, slot: int, horizon_ns: Instant) -> None:
        """Hold the neighbours of a node that is to be (re)started at one hop past `horizon_ns` until it is alive."""
        self._ordered[slot] = self.page.mark_booting(slot, horizon_ns), horizon_ns
        self.ring()

    def bury(self, slot: int) -> None:
        """Declare a node dead: no neighbour waits for it any more."""
        self._ordered[slot] = self.page.mark_dead(slot), None
        self.ring()

    def _insist(self) -> None:
        """Repeat orders that a relay has overwritten: an order may come between its read and its write of a slot."""
        for slot, (orders, held_ns) in self._ordered.items():
            if self.page.orders(slot) < orders:
                self.bury(slot) if held_ns is None else self.hold_for(slot, held_ns)

    def has_reached(self, reached: dict[int, list[int]]) -> None:
        """Take what nodes on another host had reached and counted when their process died.

        `reached`: slot -> words of `ClockPage.reached`, then of the tally. The last news of such a node may come after
        the order that it is dead, and are then dropped. Its neighbours learn with the order what those news would have
        said.
        """
        for slot, last in reached.items():
            self.page.set_tally(slot, last[-tally.WORDS :])
            if self.is_alive(slot):
                self.page.set_reached(slot, last[: -tally.WORDS])

    def is_alive(self, slot: int) -> bool:
        """Whether the node's daemon has bound its sockets."""
        return self.page.slot_state(slot) == SlotState.ALIVE

    def all_alive(self) -> bool:
        """Whether the daemons of all nodes have bound their sockets."""
        return all(map(self.is_alive, range(self.page.nodes)))

    @property
    def state(self) -> str:
        """`run` or `sleep`."""
        return PageState(self.page.state).name.lower()
