"""A capture from its beginning to its end: taps set, looks taken, packets written, until somebody or a bound says stop.

Owns the bounds, the rhythm and the good order of the end: whatever ends a capture (a bound, a signal, a reader that
goes away, the end of the fabric), what has been heard is written and the file is complete. How packets are heard is
`orchestrator.captures.taps`'s, how they are written `capture_file`'s and `sink`'s.

**Rhythm.** Taps keep a bounded number of packets between two looks, and a look is followed by `REST` times its own
length without one. So reading takes a third of the time at most, however much there is to read and however slow the
machine is; what comes faster is forgotten at the node and counted.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.units import MIB, NEVER, Instant
from orchestrator.captures import wall_clock
from orchestrator.captures.capture_file import CaptureFile, Clock
from orchestrator.captures.sink import Sink
from orchestrator.captures.taps import FabricTaps, Heard
from orchestrator.captures.wall_clock import WallClock
from orchestrator.captures.wires import Wire
from orchestrator.fabric.verbs import Verbs

LOOK_WALL_S: Final = 0.1
"""From a look to the next, at least."""
REST: Final = 2
"""A look is followed by so many times its own length without one."""
LAST_LOOKS: Final = 3
"""How often nodes that do not answer are asked for what they have when a capture is stopped."""
ASLEEP_WALL_S: Final = 0.5
"""Between two looks at a fabric in which nothing is pending."""
SIZE_BYTES: Final = 256 * MIB
"""Size of a capture that nobody bounds otherwise."""
SNAP_BYTES: Final = 256
"""Kept of a packet where nobody says otherwise: all headers, and some of the payload."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be captured, and when it is enough."""

    wires: Sequence[Wire]
    wanted: PacketFilter = field(default_factory=PacketFilter)
    """Of the packets on them; its `ports` are of no account."""
    clock: Clock = "fabric"
    snap_bytes: int = SNAP_BYTES
    packets_max: int | None = None
    size_bytes_max: int = SIZE_BYTES
    """Of the whole file."""
    for_ns: int | None = None
    """Fabric time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of it."""

    packets: int
    size_bytes: int
    lost: int
    """Wanted packets for which the taps had no room."""
    again: tuple[str, ...]
    """Nodes whose tap was set again after they had been down."""
    silent: tuple[str, ...]
    """Nodes that did not answer at the end: what they had not told by then is missing."""
    why: str
    """What ended it."""


async def capture(
    fabric: Verbs, request: Request, sink: Sink, stop: asyncio.Event, begun: Callable[[], None] = lambda: None
) -> Outcome:
    """Capture into `sink` until a bound is reached or `stop` is set. `begun` is called when all taps are set: what is
    sent from then on is captured.

    Raises RefusedError when a node refuses one more tap, or the file cannot be written on.
    """
    return await _Capture(fabric, request, sink, stop, wall_clock.whose(await fabric.host_pairs())).run(begun)


class _Capture:
    def __init__(self, fabric: Verbs, request: Request, sink: Sink, stop: asyncio.Event, note: str) -> None:
        self._fabric = fabric
        self._request = request
        self._sink = sink
        self._stop = stop
        self._wall = WallClock()
        self._file = CaptureFile(
            sink.write, fabric.topology, request.wires, request.clock, self._wall,
            application=f"mrcfabric {version('mrcfabric')}", snap_bytes=request.snap_bytes, note=note,
        )  # fmt: skip
        if not self._file.has_room_for(0, request.size_bytes_max):
            raise ConfigError("--size", f"{request.size_bytes_max} bytes are too few for the head of the file")
        self._taps = FabricTaps(fabric, request.wires, request.wanted, request.snap_bytes)
        self._from_ns: Instant = 0
        self._until_ns: Instant = NEVER
        """From when (exclusive) until when a packet is wanted."""
        self._asleep = False
        self._looked_wall_s = 0.0
        """What the latest look took."""
        self._why = ""
        self._enough = False
        """A bound has been reached: what was heard beyond it is not wanted."""

    async def run(self, begun: Callable[[], None]) -> Outcome:
        """Everything, from the taps to the last block."""
        await self._read_clocks()
        await self._taps.begin()
        try:
            begun()
            await self._look_until_enough()
        finally:
            with suppress(asyncio.CancelledError):
                await self._taps.end()
        lost = self._taps.lost()
        self._file.finish(lost)
        await self._sink.flush_last()
        again = tuple(self._taps.again)
        silent = tuple(sorted(self._taps.silent))
        return Outcome(self._file.packets, self._file.size_bytes, sum(lost.values()), again, silent, self._why)

    async def _look_until_enough(self) -> None:
        try:
            if self._request.for_ns is not None:
                # FabricTaps were set one after the other: only from now on every link is listened to.
                self._from_ns = (await self._fabric.clock()).front_ns
                self._until_ns = self._from_ns + self._request.for_ns
            await self._flush()
            last_looks = 0
            while not self._why:
                await self._wait()
                # What came before the signal came in time: look once more.
                stopped = self._stop.is_set()
                began_s = time.monotonic()
                self._take(await self._taps.look(), await self._read_clocks())
                self._looked_wall_s = time.monotonic() - began_s
                last_looks += stopped
                if stopped and (not self._taps.silent or last_looks == LAST_LOOKS):
                    self._end("it was stopped")
                await self._flush()
        except RefusedError:
            if self._sink.failed:
                raise
            self._end("the fabric has ended")
        self._take_rest()

    async def _wait(self) -> None:
        usual_s = ASLEEP_WALL_S if self._asleep else LOOK_WALL_S
        with suppress(TimeoutError):
            async with asyncio.timeout(max(usual_s, REST * self._looked_wall_s)):
                await self._stop.wait()

    async def _read_clocks(self) -> Instant:
        try:
            clock = await self._fabric.clock()
        except NoAnswerError:
            return 0
        self._asleep = clock.state == "sleep"
        self._wall.look(clock.now_ns, time.time_ns())
        return clock.now_ns

    def _take(self, heard: Sequence[Heard], now_ns: Instant) -> None:
        for one in heard:
            if one.at_ns <= self._from_ns:
                continue
            if one.at_ns > self._until_ns:
                self._end("the time is over", enough=True)
                return
            if not self._file.has_room_for(len(one.data), self._request.size_bytes_max):
                self._end("the file is full", enough=True)
                return
            self._file.packet(one)
            if self._file.packets == self._request.packets_max:
                self._end("there are as many packets as were asked for", enough=True)
                return
        # The clock may be ahead of what has been told.
        if min(now_ns, self._taps.complete_ns) > self._until_ns:
            self._end("the time is over", enough=True)

    def _take_rest(self) -> None:
        """Packets on their way, unless a bound has been reached."""
        if not self._enough:
            self._take(self._taps.rest(), 0)

    def _end(self, why: str, *, enough: bool = False) -> None:
        self._why = self._why or why
        self._enough = self._enough or enough

    async def _flush(self) -> None:
        """Write; a signal does not wait for a reader that has fallen asleep."""
        writing = asyncio.ensure_future(self._sink.flush())
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([writing, stopping], return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
        finally:
            stopping.cancel()
            writing.cancel()
        if self._sink.gone:
            self._end("its reader has gone")
