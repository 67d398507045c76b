"""The driver of cores over real UDP: all drives of one process on one asyncio loop.

Owns when a turn happens, and the wall clock's bound; `mrcfabric.drive` has the tick. A turn follows a doorbell (a
neighbour has published the horizon for which a drive waits, or the agent has woken the fabric), a timer (the wall clock
limits), or a kick (a command came). A node that a fault slows down pauses between its ticks (`mrcfabric.brake`); its
control channel is served meanwhile, and the other nodes of the process go on. Without a shared page (a daemon started
by hand) only the wall clock limits; frames may then be late, and are counted.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence

from mrcfabric.clock import LIMIT_WORD, W_STATE, ClockPage, PageState
from mrcfabric.drive import Drive
from mrcfabric.link_port import LinkEnd
from mrcfabric.node import Node
from mrcfabric.sim.trace import Trace
from mrcfabric.units import NEVER, NS_PER_MS, NS_PER_S, Instant

ASLEEP = int(PageState.SLEEP)
# Two processes that write one word at once can lose a wake-up; it then costs at most this much wall time.
WATCHDOG_S = 0.05
WATCHDOG_ASLEEP_S = 1.0
# When to look again for what rings no doorbell: a frame in the kernel's backlog, the slowest node of the page.
POLL_S = 0.001
# How long drives get turns before other callbacks of the loop run.
TURN_WALL_NS = 1 * NS_PER_MS
# How many drives are ticked between two looks at the time: a tick under load may take a millisecond.
TICKS_MAX = 8
# How long to look at the page before going to sleep, where cores are free for it.
LOOK_WALL_NS = 300_000
# To give way takes a microsecond where no other program wants the core, and longer than this where one does.
YIELD_WALL_NS = 50_000
# After so many looks in vain in a row, one of 2 to the power of this many waits is looked through.
MISSED_LOOKS_MAX = 6
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
        self.free = not dilation
        """Whether the wall clock binds nobody."""
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


def kill_process(_drive: Drive) -> None:
    """The crash of a node that has its process for itself."""
    os.kill(os.getpid(), signal.SIGKILL)


class Runner:
    """All drives of one process. `add` each core, then `serve`; nodes may also come and go meanwhile."""

    def __init__(
        self,
        page: ClockPage,
        doorbell: int,
        *,
        shared: bool = True,
        agent_doorbell: int | None = None,
        spins: bool = False,
    ) -> None:
        """`doorbell`: this process's eventfd; `agent_doorbell`: the agent's, rung when work meets a sleeping fabric.

        `spins`: a core is free for this process, so that it may look at the page for a while before it sleeps.
        """
        self.page = page
        self.shared = shared
        self.furthest_ns: Instant = 0
        self.drives: list[Drive] = []
        self.on_crash: Callable[[Drive], None] = kill_process
        """Called when a drive has reached the instant of its crash and published it."""
        self.on_failure: Callable[[Drive, Exception], None] | None = None
        """Called with a drive whose core has failed; None: the error ends the process."""
        self._doorbell = doorbell
        self._agent_doorbell = agent_doorbell
        self._step_ns = NS_PER_S
        self._pace = Pace(page.dilation, self._step_ns)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._kicked = False
        self._retry = False
        self._to_ring: set[int] = set()
        self._limit_ns: Instant = NEVER
        """The limit at the latest tick."""
        self._spins = shared and spins
        self._skip_looks = self._missed_looks = 0
        self._next = 0
        """The drive with which a round goes on whose turn has ended before the last one."""

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
        step_ns = min(self._step_ns, drive.step_ns)
        first = not self.drives
        # Those for whom other processes wait have their turn first, so that these need not wait for the rest of us.
        self.drives = sorted([*self.drives, drive], key=lambda one: not one.outward)
        if first or step_ns < self._step_ns:
            self._step_ns = step_ns
            self._begin_pace()
        self.page.mark_alive(slot, os.getpid(), incarnation)
        if not self._asleep():
            self.kick()
        return drive

    def remove(self, drive: Drive) -> None:
        """Take a node out at once, as if its process had been killed: its sockets close, and it tells the page nothing.

        What it has published stays in the page.
        """
        # A new list: a turn may be going over the old one.
        self.drives = [one for one in self.drives if one is not drive]
        drive.drop()

    def _begin_pace(self) -> None:
        self._pace = Pace(self.page.dilation, self._step_ns)
        self._pace.start(self._reached())

    async def serve(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then close the sockets."""
        self._loop = loop = asyncio.get_running_loop()
        self._begin_pace()
        loop.add_reader(self._doorbell, self._rung)
        self._watch()
        try:
            await stop.wait()
        finally:
            loop.remove_reader(self._doorbell)
            for handle in (self._watchdog, self._timer):
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
            self._loop.call_soon(self._kicked_turn)

    def ring(self, doorbell: int) -> None:
        self._to_ring.add(doorbell)

    def retry_soon(self) -> None:
        self._retry = True

    def crashed(self, drive: Drive) -> None:
        self.on_crash(drive)

    # What causes a turn.

    def _asleep(self) -> bool:
        return self.shared and self.page.words[W_STATE] == ASLEEP

    def _rung(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._doorbell)
        self._turn_unless_kicked()

    def _watch(self) -> None:
        assert self._loop is not None, "the watchdog is cancelled with the loop"
        self._watchdog = self._loop.call_later(WATCHDOG_ASLEEP_S if self._asleep() else WATCHDOG_S, self._watch)
        self._turn_unless_kicked()

    def _kicked_turn(self) -> None:
        self._kicked = False
        self._turn()

    def _turn_unless_kicked(self) -> None:
        """Take a turn, unless one is coming anyway.

        A turn that ends early asks for the next one. If two causes had a turn each, both would ask, and from then on
        there would be two turns in each iteration of the loop. A busy process would have more and more of them, and
        answer nobody in between.
        """
        if not self._kicked:
            self._turn()

    def _turn(self) -> None:
        """Tick every drive until none can make a step; then wait for a doorbell, a timer or a kick."""
        if self._asleep() or self._loop is None:
            return
        for drive in self.drives:
            drive.wait_ns = 0
        until_ns = time.monotonic_ns() + TURN_WALL_NS
        while True:
            wall_bound = NEVER if self._pace.free else self._pace.bound(self._reached() if self.shared else None)
            moved = self._tick_all(wall_bound, until_ns)
            # Ring once per process, after all drives have moved: the woken process takes the CPU from us at once.
            if self._to_ring:
                self._ring_all()
            mono_ns = time.monotonic_ns()
            for drive in self.drives:
                drive.tell_in_time(mono_ns)
            if not moved and not (self._spins and self._look_out(mono_ns)):
                self._arrange(wall_bound)
                return
            if mono_ns > until_ns:
                break
        self.kick()

    def _ring_all(self) -> None:
        for doorbell in self._to_ring:
            os.eventfd_write(doorbell, 1)
        self._to_ring.clear()

    def _tick_all(self, wall_bound: Instant, until_ns: int) -> bool:
        """Tick the drives that are not known to wait; whether any has moved, or the turn has ended before the last one.

        Hundreds of busy nodes may share a process, and a round of them may take a second. Others are heard meanwhile.
        """
        words, moved = self.page.words, False
        free = self._pace.free
        if free and words[LIMIT_WORD] != self._limit_ns:
            self._limit_ns = words[LIMIT_WORD]
            for drive in self.drives:
                drive.wait_ns = 0
        first, self._next = self._next, 0
        for number, drive in enumerate(self.drives[first:], first):
            if number % TICKS_MAX == 0 and number > first and time.monotonic_ns() > until_ns:
                self._next = number
                return True
            if free and words[drive.wait_word] < drive.wait_ns:
                continue
            if self._spins and self._to_ring and not drive.outward:
                self._ring_all()  # there is a core for the woken process, and the rest concerns nobody but us
            try:
                if drive.brake.spells:
                    moved |= self._tick_braked(drive, wall_bound)
                else:
                    moved |= drive.tick(wall_bound, self._pace.step_ns)
            except Exception as error:
                if self.on_failure is None:
                    raise
                self.on_failure(drive, error)
        return moved

    def _look_out(self, mono_ns: int) -> bool:
        """Look at the page for a while before this process goes to sleep; whether a drive can go on.

        Nobody needs to ring meanwhile. Not if the wall clock binds: then the fabric waits for a timer. Whoever finds
        that another program wants the core, or that nothing comes again and again, looks less often.
        """
        if self._skip_looks:
            self._skip_looks -= 1
            return False
        words = self.page.words
        awaited = [(drive.wait_word, drive.wait_ns) for drive in self.drives if words[drive.wait_word] < drive.wait_ns]
        if not self._pace.free or self._retry or len(awaited) < len(self.drives):
            return False
        until_ns = mono_ns + LOOK_WALL_NS
        while True:
            for word, wait_ns in awaited:
                if words[word] >= wait_ns:
                    self._missed_looks = 0
                    return True
            os.sched_yield()
            now_ns = time.monotonic_ns()
            if now_ns > until_ns or now_ns - mono_ns > YIELD_WALL_NS:
                self._missed_looks = min(self._missed_looks + 1, MISSED_LOOKS_MAX)
                self._skip_looks = (1 << self._missed_looks) - 1
                return False
            mono_ns = now_ns

    def _tick_braked(self, drive: Drive, wall_bound: Instant) -> bool:
        """Tick a node that a fault slows down, unless it pauses; False while it does."""
        begun_s = time.monotonic()
        if begun_s < drive.resumes_s:
            return False
        moved = drive.tick(wall_bound, self._pace.step_ns)
        worked_s = time.monotonic() - begun_s
        if pause_s := drive.brake.pause_s(worked_s, drive.now_ns):
            assert self._loop is not None, "turns end with the loop"
            drive.resumes_s = begun_s + worked_s + pause_s
            self._loop.call_later(pause_s, self._turn_unless_kicked)
        return moved

    def _reached(self) -> Instant:
        return min((drive.now_ns for drive in self.drives), default=0)

    def _arrange(self, wall_bound: Instant) -> None:
        assert self._loop is not None, "turns end with the loop"
        delays = [POLL_S] if self._retry else []
        ready = False
        for drive in self.drives:
            if drive.stands or drive.pauses or (self.shared and drive.must_wait()):
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
            self._timer = self._loop.call_later(min(delays), self._turn_unless_kicked)
        elif ready:
            self.kick()
        self._retry = False
