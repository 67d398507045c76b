"""The driver of cores over real UDP: all drives of one process on one asyncio loop.

Owns when a turn happens, and the wall clock's bound; `mrcfabric.drive` has the tick. A turn follows a doorbell (a
neighbour has published the horizon for which a drive waits, or the agent has woken the fabric), a timer (the wall clock
limits), or a kick (a command came). A process that a fault slows down pauses between its turns (`mrcfabric.brake`) and
serves its control channel meanwhile. Without a shared page (a daemon started by hand) only the wall clock limits;
frames may then be late, and are counted.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Sequence

from mrcfabric.brake import Brake
from mrcfabric.clock import ClockPage
from mrcfabric.drive import Drive
from mrcfabric.link_port import LinkEnd
from mrcfabric.node import Node
from mrcfabric.sim.trace import Trace
from mrcfabric.units import NEVER, NS_PER_MS, NS_PER_S, Instant

# Two processes that write one word at once can lose a wake-up; it then costs at most this much wall time.
WATCHDOG_S = 0.05
WATCHDOG_ASLEEP_S = 1.0
# When to look again for what rings no doorbell: a frame in the kernel's backlog, the slowest node of the page.
POLL_S = 0.001
# How many turns all drives get before other callbacks of the loop run.
TURNS_MAX = 8
# How far a node without living neighbours may be ahead of the slowest node, in shortest hops. Two nodes that are
# connected through living nodes are never further apart than the hops between them, so this must not be below the
# longest such distance.
LEAD_HOPS_MAX = 16
# Wall-clock ticks: one per shortest hop, within these bounds.
WALL_TICK_NS_MIN = 1 * NS_PER_MS
WALL_TICK_NS_MAX = 10 * NS_PER_MS
# How far the wall-clock bound may run ahead of the fabric, in shortest hops, before it is pulled back.
WALL_LEAD_HOPS_MAX = 2


class Pace:
    """The wall clock as an upper bound of fabric time. A fabric that fell behind does not catch up later."""

    def __init__(self, dilation: float, step_ns: int) -> None:
        """`dilation` in wall seconds per fabric second, 0 for no bound; `step_ns` the shortest hop."""
        self._dilation = dilation
        self._lead_ns = WALL_LEAD_HOPS_MAX * step_ns
        self._mono_ns = time.monotonic_ns()
        self._fabric_ns: Instant = 0
        wall_ns = min(max(step_ns * dilation, WALL_TICK_NS_MIN), WALL_TICK_NS_MAX)
        self.step_ns = max(1, min(step_ns, int(wall_ns / dilation))) if dilation else 1
        """The shortest step worth a wall-clock tick."""

    def start(self, fabric_ns: Instant) -> None:
        """Start the pace: it is `fabric_ns` now."""
        self._mono_ns = time.monotonic_ns()
        self._fabric_ns = fabric_ns

    def bound(self, reached_ns: Instant | None) -> Instant:
        """The furthest instant that the pace allows now.

        `reached_ns`: what the fabric has reached; None: it must follow.
        """
        if not self._dilation:
            return NEVER
        mono_ns = time.monotonic_ns()
        bound = self._fabric_ns + int((mono_ns - self._mono_ns) / self._dilation)
        if reached_ns is not None and bound - reached_ns > self._lead_ns:
            self._mono_ns = mono_ns
            self._fabric_ns = bound = reached_ns + self._lead_ns
        return bound

    def wait_s(self, missing_ns: int) -> float:
        """Wall time until the pace allows `missing_ns` more."""
        return max(missing_ns * self._dilation, WALL_TICK_NS_MIN) / NS_PER_S


class Runner:
    """All drives of one process. `add` each core, then `serve`."""

    def __init__(
        self, page: ClockPage, doorbell: int, *, shared: bool = True, agent_doorbell: int | None = None
    ) -> None:
        """`doorbell`: this process's eventfd; `agent_doorbell`: the agent's, rung when work meets a sleeping fabric."""
        self.page = page
        self.shared = shared
        self.furthest_ns: Instant = 0
        self.drives: list[Drive] = []
        self.brake = Brake()
        self._doorbell = doorbell
        self._agent_doorbell = agent_doorbell
        self._step_ns = NS_PER_S
        self._pace = Pace(page.dilation, self._step_ns)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._kicked = False
        self._retry = False
        self._to_ring: set[int] = set()

    def add(
        self,
        core: Node,
        slot: int,
        links: Sequence[LinkEnd],
        *,
        incarnation: int = 0,
        trace: Trace | None = None,
        offload: bool = True,
    ) -> Drive:
        """Bind the node's sockets and take its place in the page. Raises ConfigError when a port is taken.

        `links` has one entry for every port the core transmits on.
        """
        drive = Drive(self, core, slot, links, incarnation=incarnation, trace=trace, offload=offload)
        self.drives.append(drive)
        self._step_ns = min(self._step_ns, drive.step_ns)
        self.page.mark_alive(slot, os.getpid(), incarnation)
        return drive

    async def serve(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then close the sockets."""
        self._loop = loop = asyncio.get_running_loop()
        self._pace = Pace(self.page.dilation, self._step_ns)
        self._pace.start(self._reached())
        loop.add_reader(self._doorbell, self._rung)
        self._watch()
        try:
            await stop.wait()
        finally:
            loop.remove_reader(self._doorbell)
            for handle in (self._watchdog, self._timer, self._pause):
                if handle is not None:
                    handle.cancel()
            self._loop = None
            for drive in self.drives:
                drive.close()

    # Called by drives.

    def look_ahead(self) -> Instant:
        self.furthest_ns = self.page.fabric_now() + LEAD_HOPS_MAX * self._step_ns if self.shared else NEVER
        return self.furthest_ns

    def kick(self) -> None:
        """Take a turn soon. If the fabric sleeps, ring the agent, which wakes it."""
        if self._asleep():
            if self._agent_doorbell is not None:
                os.eventfd_write(self._agent_doorbell, 1)
        elif self._loop is not None and not self._kicked:
            self._kicked = True
            self._loop.call_soon(self._turn)

    def ring(self, doorbell: int) -> None:
        self._to_ring.add(doorbell)

    def retry_soon(self) -> None:
        self._retry = True

    # What causes a turn.

    def _asleep(self) -> bool:
        return self.shared and self.page.asleep

    def _rung(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._doorbell)
        self._turn()

    def _watch(self) -> None:
        assert self._loop is not None, "the watchdog is cancelled with the loop"
        self._watchdog = self._loop.call_later(WATCHDOG_ASLEEP_S if self._asleep() else WATCHDOG_S, self._watch)
        self._turn()

    def _turn(self) -> None:
        """Tick every drive until none can make a step; then wait for a doorbell, a timer or a kick."""
        self._kicked = False
        if self._asleep() or self._loop is None or self._pause is not None:
            return
        begun_s = time.monotonic() if self.brake.spells else 0.0
        self._tick_all()
        if self.brake.spells and (pause_s := self.brake.pause_s(time.monotonic() - begun_s, self._reached())):
            self._pause = self._loop.call_later(pause_s, self._go_on)

    def _go_on(self) -> None:
        """Resume after a pause."""
        self._pause = None
        self._turn()

    def _tick_all(self) -> None:
        wall_bound = NEVER
        for _ in range(TURNS_MAX):
            wall_bound = self._pace.bound(self._reached() if self.shared else None)
            moved = False
            for drive in self.drives:
                moved |= drive.tick(wall_bound, self._pace.step_ns)
            # Ring once per process, after all drives have moved: the woken process takes the CPU from us at once.
            for doorbell in self._to_ring:
                os.eventfd_write(doorbell, 1)
            self._to_ring.clear()
            mono_ns = time.monotonic_ns()
            for drive in self.drives:
                drive.tell_in_time(mono_ns)
            if not moved:
                self._arrange(wall_bound)
                return
        self.kick()

    def _reached(self) -> Instant:
        return min((drive.now_ns for drive in self.drives), default=0)

    def _arrange(self, wall_bound: Instant) -> None:
        assert self._loop is not None, "turns end with the loop"
        delays = [POLL_S] if self._retry else []
        ready = False
        for drive in self.drives:
            if drive.stands or (self.shared and drive.must_wait()):
                continue
            missing_ns = self._pace.step_ns - (wall_bound - drive.now_ns)
            if missing_ns > 0:
                delays.append(self._pace.wait_s(missing_ns))
            elif self.furthest_ns - drive.now_ns < drive.step_ns:
                delays.append(POLL_S)
            else:
                ready = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if delays:
            self._timer = self._loop.call_later(min(delays), self._turn)
        elif ready:
            self.kick()
        self._retry = False
