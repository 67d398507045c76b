"""The driver of cores over real UDP: the horizon rule, ticks, trains, and what it counts about its own fidelity.

One `Runner` per process, one `Drive` per core in it (design: every core is still its own daemon with its own sockets).
A tick of a drive is, in this order:

1. read the clock page: the smallest `horizon + link delay` over the neighbours, and the wall-clock bound;
2. take from the sockets exactly the frames that the page says were sent (the order matters: what a neighbour has
   published it has sent before);
3. advance the core to that instant with the frames and commands that are due, in the order of `mrcfabric.node`;
4. send what came out, in trains;
5. publish: frames sent and taken, then the horizon; ring those neighbours who wait for it.

So a process may be as late in wall time as it likes: nothing overtakes it in fabric time, and the fabric gets slower,
never wrong. A drive whose step would be shorter than its shortest link delay waits instead: it writes into the page
which horizon it needs, and the neighbour's next publication rings its doorbell (an eventfd). The node that is furthest
behind can always make a full step, so the rule cannot lock up.

Without a page (a daemon started by hand) only the wall clock binds, and lateness is possible; it is counted.
"""

import asyncio
import contextlib
import os
import signal
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrcfabric.clock import ClockPage
from mrcfabric.node import Input, Node, Rank, Transmit
from mrcfabric.sim.trace import Trace
from mrcfabric.udp import TRAIN_BYTES_MAX, TRAIN_SEGMENTS_MAX, Address, Endpoint
from mrcfabric.units import NEVER, NS_PER_MS, NS_PER_S, Buffer, Instant
from mrcfabric.wire.link import LINK_HEADER, LINK_HEADER_BYTES, LINK_VERSION

# A lost wake-up (two processes write one word at once) costs at most this much wall time.
WATCHDOG_S = 0.05
# A frame that was sent but is not in the socket is in the kernel's backlog; after this it is a host drop.
MISSING_WALL_NS_MAX = 500 * NS_PER_MS
MISSING_POLL_S = 0.001
# Turns of all drives before other callbacks of the loop get their turn.
TURNS_MAX = 8
# Wall-clock ticks: a part of the shortest hop, within these bounds.
WALL_TICK_DIVISOR = 4
WALL_TICK_NS_MIN = 1 * NS_PER_MS
WALL_TICK_NS_MAX = 10 * NS_PER_MS
# How far the wall-clock bound may run ahead of what the fabric reached, in shortest hops, before it is pulled back.
WALL_LEAD_HOPS_MAX = 2

# How far a node without living neighbours may be ahead of the slowest node, in shortest hops. Two nodes with a living
# way between them are never further apart than the hops of that way, so this must not be below the longest.
LEAD_HOPS_MAX = 16

_LATEST = 1 << 62


@dataclass(slots=True)
class LinkEnd:
    """One port of a node: where its socket is bound, who is at the other end, and how far away that is."""

    port: int
    local: Address
    peer: Address
    peer_node: int
    """The neighbour's slot in the clock page."""
    peer_port: int
    delay_ns: int
    peer_doorbell: int | None = None
    """The eventfd of the neighbour's process; None when it is this process, or there is no page."""


@dataclass(slots=True)
class Fidelity:
    """What the emulation did to the fabric: all zero but the traffic in a faithful run."""

    late_frames: int = 0
    late_ns_max: int = 0
    late_commands: int = 0
    host_drops: int = 0
    bad_frames: int = 0
    refused: int = 0
    frames_in: int = 0
    frames_out: int = 0
    trains_in: int = 0
    trains_out: int = 0
    ticks: int = 0
    receive_buffer_bytes: int = 0


@dataclass(slots=True)
class _Port:
    end: LinkEnd
    endpoint: Endpoint
    sent_word: int
    """Our own count of frames sent, in the page."""
    taken_word: int
    published_word: int
    """The neighbour's count of frames sent to us."""
    horizon_word: int
    """The neighbour's horizon."""
    want_word: int
    """Where we write for which horizon of the neighbour we wait."""
    wanted_word: int
    """Where the neighbour writes for which horizon of ours it waits."""
    sent: int = 0
    taken: int = 0
    peer_incarnation: int = -1
    missing_since_mono_ns: int = 0
    outgoing: list[Transmit] = field(default_factory=list)


class Drive:
    """One core under a runner: its sockets, its held frames, its place in the clock page."""

    def __init__(
        self,
        runner: "Runner",
        core: Node,
        slot: int,
        links: Sequence[LinkEnd],
        *,
        incarnation: int,
        tag: int,
        trace: Trace | None,
        offload: bool,
    ) -> None:
        self.core = core
        self.slot = slot
        self.fidelity = Fidelity()
        self.on_events: Callable[[list[Any]], None] = lambda _events: None
        self.incarnation = incarnation
        self.trace = trace
        self._runner = runner
        self._tag = tag
        self._live_from = core.now_ns
        self._crash_ns = NEVER
        self._held: list[Input] = []
        self._command_sequence = 0
        self._asap: list[Any] = []
        page = runner.page
        self._words = page.words
        self._horizon_word = page.horizon_word(slot)
        self._pending_word = page.pending_word(slot)
        self._now = min(core.now_ns, page.horizon(slot)) if runner.shared else core.now_ns
        self.step_ns = min((end.delay_ns for end in links), default=NS_PER_S)
        self._ports = [self._open(end, offload) for end in links]
        self._by_number = {port.end.port: port for port in self._ports}

    def _open(self, end: LinkEnd, offload: bool) -> _Port:
        page = self._runner.page
        port = _Port(
            end=end,
            endpoint=Endpoint(end.local, end.peer, offload=offload),
            sent_word=page.sent_word(self.slot, end.port),
            taken_word=page.taken_word(self.slot, end.port),
            published_word=page.sent_word(end.peer_node, end.peer_port),
            horizon_word=page.horizon_word(end.peer_node),
            want_word=page.want_word(end.peer_node, end.peer_port),
            wanted_word=page.want_word(self.slot, end.port),
        )
        # Sequence numbers go on over a restart; what was sent to the dead socket is gone.
        port.sent = self._words[port.sent_word]
        port.taken = self._words[port.taken_word] = self._words[port.published_word]
        self.fidelity.receive_buffer_bytes = port.endpoint.receive_buffer_bytes
        return port

    # What a daemon asks of its drive.

    @property
    def now_ns(self) -> Instant:
        """The fabric time this node has reached."""
        return self._now

    def command(self, command: Any, at_ns: Instant | None = None) -> None:
        """Hand a command to the core, at `at_ns` or as soon as possible. A late one is carried out at once, counted."""
        if at_ns is None:
            self._asap.append(command)
        else:
            self._command_sequence += 1
            self._held.append(Input(at_ns, Rank.COMMAND, 0, self._command_sequence, command))
        self._words[self._pending_word] = 1
        self._runner.kick()

    def crash_at(self, at_ns: Instant) -> None:
        """Advance to `at_ns` exactly, send and publish, then die by SIGKILL."""
        self._crash_ns = at_ns
        self._words[self._pending_word] = 1
        self._runner.kick()

    # One tick.

    def tick(self, wall_bound: Instant) -> bool:
        """Advance as far as neighbours and wall clock allow; False when that is not (yet) a full step."""
        words = self._words
        until = wall_bound
        if self._runner.shared:
            for port in self._ports:
                limit = words[port.horizon_word] + port.end.delay_ns
                if limit < until:
                    until = limit
        if until > self._runner.furthest_ns:
            until = min(until, self._runner.look_ahead())
        until = min(until, max(self._crash_ns, self._now))
        if until - self._now < self._runner.shortest_step_ns(self, wall_bound) and until < self._crash_ns:
            return False
        if until <= self._now:
            if self._crash_ns <= self._now:
                os.kill(os.getpid(), signal.SIGKILL)
            return False
        if not self._take_frames():
            return False
        self.fidelity.ticks += 1
        self._advance(until)
        self._publish(until)
        if until >= self._crash_ns:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def _take_frames(self) -> bool:
        """Take every published frame from the sockets; False when one is still on its way through the kernel."""
        words = self._words
        if not self._runner.shared:
            for port in self._ports:
                self._receive(port, _LATEST)
            return True
        complete = True
        for port in self._ports:
            published = words[port.published_word]
            if published > port.taken:
                self._receive(port, published)
                if port.taken < published and not self._give_up(port, published):
                    complete = False
                    continue
                words[port.taken_word] = port.taken
        return complete

    def _give_up(self, port: _Port, published: int) -> bool:
        """A published frame is not in the socket: wait for it, but not for ever."""
        mono_ns = time.monotonic_ns()
        if not port.missing_since_mono_ns:
            port.missing_since_mono_ns = mono_ns
        if mono_ns - port.missing_since_mono_ns < MISSING_WALL_NS_MAX:
            self._runner.retry_soon()
            return False
        self.fidelity.host_drops += published - port.taken
        port.taken = published
        port.missing_since_mono_ns = 0
        return True

    def _receive(self, port: _Port, enough: int) -> None:
        """Read trains until frame number `enough` has been seen or the socket is empty."""
        receive = port.endpoint.receive
        unpack = LINK_HEADER.unpack_from
        number = port.end.port
        fidelity = self.fidelity
        held = self._held
        while port.taken < enough:
            train = receive()
            if train is None:
                return
            port.missing_since_mono_ns = 0
            fidelity.trains_in += 1
            view, segment = train
            size = len(view)
            for start in range(0, size, segment):
                end = min(start + segment, size)
                if end - start <= LINK_HEADER_BYTES:
                    fidelity.bad_frames += 1
                    continue
                arrival, sequence, incarnation, version, _flags, tag = unpack(view, start)
                if tag != self._tag or version != LINK_VERSION:
                    fidelity.bad_frames += 1
                    continue
                if incarnation != port.peer_incarnation:
                    if (incarnation - port.peer_incarnation) & 0x8000:
                        fidelity.bad_frames += 1
                        continue
                    port.peer_incarnation = incarnation
                elif sequence > port.taken + 1:
                    fidelity.host_drops += sequence - port.taken - 1
                if sequence <= port.taken and self._runner.shared:
                    fidelity.bad_frames += 1
                    continue
                port.taken = sequence
                fidelity.frames_in += 1
                if arrival <= self._live_from:
                    continue  # it reached the port while the node was down
                packet: Buffer = view[start + LINK_HEADER_BYTES : end]
                if segment < size and end - start < _SMALL_BYTES:
                    packet = bytearray(packet)  # or one held acknowledgement pins its whole train
                held.append(Input(arrival, Rank.FRAME, number, sequence, packet))

    def _advance(self, until: Instant) -> None:
        """Hand the core what is due up to `until` and queue what comes out per port."""
        core = self.core
        if until <= self._live_from:
            return  # restarted, and fabric time has not yet reached the restart
        for command in self._asap:
            self._command_sequence += 1
            at_ns = max(self._now, self._live_from) + 1
            self._held.append(Input(at_ns, Rank.COMMAND, 0, self._command_sequence, command))
        self._asap.clear()
        inputs: list[Input] = []
        held = self._held
        if held:
            held.sort()
            due = bisect_right(held, until, key=_at_ns)
            if due:
                inputs = held[:due]
                del held[:due]
                if inputs[0][0] <= core.now_ns:
                    self._mend_late(inputs)
        transmits = core.advance(inputs, until)
        by_number = self._by_number
        for transmit in transmits:
            by_number[transmit[0]].outgoing.append(transmit)
        events = core.drain_events()
        if self.trace is not None:
            self.trace.add(transmits, events)
        if events:
            self.on_events(events)

    def _mend_late(self, inputs: list[Input]) -> None:
        """What should already have happened happens now, and is counted."""
        earliest = self.core.now_ns + 1
        for index, late in enumerate(inputs):
            if late.at_ns >= earliest:
                break
            if late.rank == Rank.FRAME:
                self.fidelity.late_frames += 1
                self.fidelity.late_ns_max = max(self.fidelity.late_ns_max, earliest - late.at_ns)
            else:
                self.fidelity.late_commands += 1
            inputs[index] = late._replace(at_ns=earliest)
        inputs.sort()

    def _publish(self, until: Instant) -> None:
        """Send, then say so: counts, pending work, horizon; then wake those who wait for this horizon."""
        words = self._words
        for port in self._ports:
            if port.outgoing:
                self._send(port)
                words[port.sent_word] = port.sent
        self._now = until
        words[self._pending_word] = self._pending()
        words[self._horizon_word] = until
        if not self._runner.shared:
            return
        for port in self._ports:
            if words[port.wanted_word] <= until:
                words[port.wanted_word] = NEVER
                if port.end.peer_doorbell is not None:
                    os.eventfd_write(port.end.peer_doorbell, 1)

    def _pending(self) -> int:
        busy = self._held or self._asap or self._crash_ns < NEVER or self._now < self._live_from
        return int(bool(busy) or self.core.next_timeout() is not None)

    def _send(self, port: _Port) -> None:
        """Send the port's frames as trains: equal sizes, only the last may be shorter."""
        pack = LINK_HEADER.pack
        fidelity = self.fidelity
        send = port.endpoint.send
        buffers: list[Buffer] = []
        segment = total = count = 0
        sequence = port.sent
        for _port, arrival, packet in port.outgoing:
            size = len(packet) + LINK_HEADER_BYTES
            if count and (size > segment or count == TRAIN_SEGMENTS_MAX or total + size > TRAIN_BYTES_MAX):
                fidelity.trains_out += 1
                send(buffers, segment, count)
                buffers = []
                count = total = 0
            if not count:
                segment = size
            sequence += 1
            count += 1
            total += size
            buffers.append(pack(arrival, sequence, self.incarnation, LINK_VERSION, 0, self._tag))
            buffers.append(packet)
            if size < segment:
                fidelity.trains_out += 1
                send(buffers, segment, count)
                buffers = []
                count = total = 0
        if count:
            fidelity.trains_out += 1
            send(buffers, segment, count)
        fidelity.frames_out += sequence - port.sent
        port.sent = sequence
        port.outgoing.clear()

    def wait_for_neighbours(self) -> bool:
        """Write into the page what this node waits for; True when it is already there."""
        words = self._words
        need = self._now + self.step_ns
        slowest: _Port | None = None
        least = need
        for port in self._ports:
            limit = words[port.horizon_word] + port.end.delay_ns
            if limit < least:
                least = limit
                slowest = port
        if slowest is None:
            return True
        wanted = need - slowest.end.delay_ns
        words[slowest.want_word] = wanted
        if words[slowest.horizon_word] >= wanted:
            words[slowest.want_word] = NEVER
            return True
        return False

    def fidelity_record(self) -> dict[str, int]:
        """The counts of `Fidelity`, with what the sockets know."""
        self.fidelity.refused = sum(port.endpoint.refused for port in self._ports)
        unsent = sum(port.endpoint.unsent for port in self._ports)
        record = {name: getattr(self.fidelity, name) for name in Fidelity.__slots__}
        record["unsent_trains"] = unsent
        return record

    def close(self) -> None:
        for port in self._ports:
            port.endpoint.close()


_SMALL_BYTES = 512


def _at_ns(entry: Input) -> int:
    return entry[0]


class Runner:
    """All drives of one process, on one asyncio loop. `add` each core, then `serve`."""

    def __init__(
        self, page: ClockPage, doorbell: int, *, shared: bool = True, agent_doorbell: int | None = None
    ) -> None:
        """`doorbell` is this process's eventfd. `shared=False`: the page is private, only the wall clock binds."""
        self.page = page
        self.shared = shared
        self.drives: list[Drive] = []
        self._doorbell = doorbell
        self._agent_doorbell = agent_doorbell
        self._dilation = page.dilation
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kicked = False
        self._retry = False
        self._timer: asyncio.TimerHandle | None = None
        self._step_ns = NS_PER_S
        self._wall_mono_ns = 0
        self._wall_fabric_ns = 0
        self.furthest_ns: Instant = 0
        """No drive goes beyond this before it has looked at the slowest node of the whole page."""

    def add(
        self,
        core: Node,
        slot: int,
        links: Sequence[LinkEnd],
        *,
        incarnation: int = 0,
        tag: int = 0,
        trace: Trace | None = None,
        offload: bool = True,
    ) -> Drive:
        """Bind the node's sockets and take its place in the page. Raises ConfigError when a port is taken."""
        drive = Drive(self, core, slot, links, incarnation=incarnation, tag=tag, trace=trace, offload=offload)
        self.drives.append(drive)
        self._step_ns = min(self._step_ns, drive.step_ns)
        self.page.mark_alive(slot, os.getpid(), incarnation)
        return drive

    async def serve(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set."""
        self._loop = loop = asyncio.get_running_loop()
        self._rebase_wall(min((drive.now_ns for drive in self.drives), default=0))
        loop.add_reader(self._doorbell, self._rung)
        watchdog = loop.call_later(WATCHDOG_S, self._watch)
        try:
            self._turn()
            await stop.wait()
        finally:
            loop.remove_reader(self._doorbell)
            watchdog.cancel()
            if self._timer is not None:
                self._timer.cancel()
            self._loop = None
            for drive in self.drives:
                drive.close()

    def look_ahead(self) -> Instant:
        """How far any node may go: some hops beyond the slowest. Binds only where neighbours are dead."""
        if self.shared:
            self.furthest_ns = self.page.fabric_now() + LEAD_HOPS_MAX * self._step_ns
        else:
            self.furthest_ns = NEVER
        return self.furthest_ns

    # Why a turn happens.

    def kick(self) -> None:
        """A drive has got something to do: take a turn soon, and ask the agent for time when the fabric sleeps."""
        if self.shared and self.page.asleep and self._agent_doorbell is not None:
            os.eventfd_write(self._agent_doorbell, 1)
        if self._loop is not None and not self._kicked:
            self._kicked = True
            self._loop.call_soon(self._turn)

    def retry_soon(self) -> None:
        """A published frame is not yet in the socket: look again in a moment."""
        self._retry = True

    def _rung(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._doorbell)
        self._turn()

    def _watch(self) -> None:
        if self._loop is None:
            return
        self._loop.call_later(WATCHDOG_S if not self._sleeping() else WATCHDOG_S * 20, self._watch)
        if not self._sleeping():
            self._turn()

    def _sleeping(self) -> bool:
        return self.shared and self.page.asleep

    # One turn: tick every drive until none can make a step.

    def _turn(self) -> None:
        self._kicked = False
        if self._sleeping() or self._loop is None:
            return
        for _ in range(TURNS_MAX):
            wall_bound = self._wall_bound()
            moved = False
            for drive in self.drives:
                moved |= drive.tick(wall_bound)
            if not moved:
                break
        else:
            self.kick()
            return
        self._arrange(wall_bound)

    def _arrange(self, wall_bound: Instant) -> None:
        """Nothing moves now: arrange for whatever may end that."""
        assert self._loop is not None
        delay_s = MISSING_POLL_S if self._retry else None
        self._retry = False
        for drive in self.drives:
            if self.shared and not drive.wait_for_neighbours():
                continue
            if self.furthest_ns - drive.now_ns < drive.step_ns:
                delay_s = MISSING_POLL_S
            if self._dilation and wall_bound - drive.now_ns < self._wall_step_ns():
                missing_ns = self._wall_step_ns() - (wall_bound - drive.now_ns)
                wall_s = max(missing_ns * self._dilation, WALL_TICK_NS_MIN) / NS_PER_S
                delay_s = wall_s if delay_s is None else min(delay_s, wall_s)
            elif self.shared and not self._retry_pending(delay_s):
                self.kick()
        if delay_s is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(delay_s, self._turn)

    @staticmethod
    def _retry_pending(delay_s: float | None) -> bool:
        return delay_s is not None

    # The wall clock, an upper bound only.

    def _wall_bound(self) -> Instant:
        """The furthest instant that the asked pace allows now."""
        if not self._dilation:
            return _LATEST
        mono_ns = time.monotonic_ns()
        bound = self._wall_fabric_ns + int((mono_ns - self._wall_mono_ns) / self._dilation)
        if self.shared:
            reached = min(drive.now_ns for drive in self.drives)
            lead_ns = WALL_LEAD_HOPS_MAX * self._step_ns
            if bound - reached > lead_ns:
                # The fabric is slower than the asked pace: it does not catch up later.
                self._wall_mono_ns = mono_ns
                self._wall_fabric_ns = bound = reached + lead_ns
        return bound

    def _rebase_wall(self, fabric_ns: Instant) -> None:
        self._wall_mono_ns = time.monotonic_ns()
        self._wall_fabric_ns = fabric_ns

    def _wall_step_ns(self) -> int:
        """The shortest step worth a wall-clock tick."""
        wall_ns = self._step_ns * self._dilation / WALL_TICK_DIVISOR
        wall_ns = min(max(wall_ns, WALL_TICK_NS_MIN), WALL_TICK_NS_MAX)
        return max(1, min(self._step_ns, int(wall_ns / self._dilation)))

    def shortest_step_ns(self, drive: Drive, wall_bound: Instant) -> int:
        """A full hop when the neighbours bind; a wall-clock step when the clock does."""
        if self._dilation and wall_bound - drive.now_ns < drive.step_ns:
            return self._wall_step_ns()
        return drive.step_ns
