"""Watching a running fabric: counters, goodput bins and clocks, fetched again and again.

Owns the polling and what was last seen (`Books`, `Goodput`, pairs of wall and fabric time). NICs are asked often, the
whole fabric seldom: a switch has little to say and 48 of them would be heard in the data path.
"""

import asyncio
import functools
import time
from bisect import bisect_left
from collections.abc import Callable

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.units import NS_PER_S, Instant
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.measures.accounting import Books
from orchestrator.measures.goodput import Goodput
from orchestrator.runs.death_watch import DeathWatch

PERIOD_S = 0.4
WHOLE_EVERY = 10
"""Every so many turns all nodes are asked."""
MISSED_MAX = 3
"""Looks in a row that may fail."""


class FabricLostError(Exception):
    """The fabric ended or stood still; the text says why."""


class Observer:
    """Everything seen of a fabric. Run `serve` as a task; wait with `until`."""

    def __init__(self, fabric: LaunchedFabric) -> None:
        self.fabric = fabric
        self.books = Books()
        self.goodput = Goodput.of(fabric.topology)
        self.clocks: list[tuple[float, Instant]] = []
        """(wall seconds since the start, fabric time), ascending."""
        self.began = time.monotonic()
        self._nics = list(fabric.topology.nic_names())
        self._changed = asyncio.Event()
        self._asking = asyncio.Lock()

    @property
    def now_ns(self) -> Instant:
        """Fabric time."""
        return self.fabric.now_ns()

    def wall_s(self) -> float:
        """Wall time since the observer was made."""
        return time.monotonic() - self.began

    def dilation(self) -> float:
        """Wall time over fabric time of late; 0.0 while nothing has moved."""
        if len(self.clocks) < 2:
            return 0.0
        (wall, fabric_ns), (last_wall, last_ns) = self.clocks[max(0, len(self.clocks) - 8)], self.clocks[-1]
        return (last_wall - wall) * NS_PER_S / (last_ns - fabric_ns) if last_ns > fabric_ns else 0.0

    def wall_between_s(self, start_ns: Instant, end_ns: Instant) -> float:
        """Wall time that passed between two fabric instants, interpolated between looks."""
        return interpolated(self.clocks, end_ns) - interpolated(self.clocks, start_ns)

    async def refresh(self, whole: bool = True) -> None:
        """Ask the NICs, or every node, now."""
        async with self._asking:
            asked = None if whole else self._nics
            answers = await self.fabric.patiently(lambda: self.fabric.counters(asked))
            for node, answer in answers.items():
                self.books.enter(node, answer)
            wanted = [(nic, {"since": self.goodput.resume_ns(nic)}) for nic in self._nics if nic in answers]
            for nic, args in wanted:
                bins = functools.partial(self.fabric.call, nic, "bins", args)
                self.goodput.enter(nic, await self.fabric.patiently(bins))
            self.clocks.append((self.wall_s(), self.now_ns))
        self._changed.set()

    async def serve(self) -> None:
        """Look again and again; until cancelled. Raises FabricLostError when the fabric does not answer,
        DaemonDiedError when a daemon has died that nobody asked to."""
        looking = asyncio.ensure_future(self._look_on())
        dying = asyncio.ensure_future(DeathWatch(self.fabric, self.fabric.broken).go_on())
        try:
            # A look may wait long for who is silent, and whoever has died is heard of all the same.
            await asyncio.wait([looking, dying], return_when=asyncio.FIRST_COMPLETED)
            await (dying if dying.done() else looking)
        finally:
            looking.cancel()
            dying.cancel()
            await asyncio.gather(looking, dying, return_exceptions=True)

    async def _look_on(self) -> None:
        turn = missed = 0
        while True:
            turn += 1
            try:
                await self.refresh(whole=turn % WHOLE_EVERY == 0)
                missed = 0
            except (NoAnswerError, RefusedError) as error:
                # A node may die or return while it is being asked.
                missed += 1
                if missed > MISSED_MAX:
                    raise FabricLostError(str(error)) from None
            await asyncio.sleep(PERIOD_S)

    async def until(self, condition: Callable[[], bool], deadline_s: float, what: str) -> None:
        """Wait until a condition on what was seen holds. Raises FabricLostError after `deadline_s` of wall time."""
        try:
            async with asyncio.timeout(deadline_s):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise FabricLostError(f"{what}: not within {deadline_s:g} s") from None


def interpolated(clocks: list[tuple[float, Instant]], at_ns: Instant) -> float:
    """Wall seconds at a fabric instant, by the looks before and after it; clamped to the first and the last."""
    if not clocks:
        return 0.0
    place = bisect_left(clocks, at_ns, key=lambda look: look[1])
    if place == 0:
        return clocks[0][0]
    if place == len(clocks):
        return clocks[-1][0]
    (wall, before_ns), (next_wall, after_ns) = clocks[place - 1], clocks[place]
    return wall + (next_wall - wall) * (at_ns - before_ns) / (after_ns - before_ns)
