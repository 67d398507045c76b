"""Runs a capture: sets taps, takes looks and writes packets until a bound is reached or it is stopped.

Owns the bounds, the pace, and a clean end. Whatever ends a capture (a bound, a signal, a reader that goes away, the end
of the fabric), it writes the packets it has and completes the file. `orchestrator.captures.taps` gets the packets;
`capture_file` and `sink` write them.

**Pace.** Taps keep a bounded number of packets between two looks. After each look the capture pauses for `REST` times
the look's own length. So it reads for a third of the time at most, however much there is to read and however slow the
machine is. The node drops packets that come faster, and counts them.
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
"""The least time from one look to the next."""
REST: Final = 2
"""After a look, the pause is this many times as long as the look."""
LAST_LOOKS: Final = 3
"""How often nodes that do not answer are still asked for their packets when a capture is stopped."""
ASLEEP_WALL_S: Final = 0.5
"""The time between two looks at a fabric in which nothing is pending."""
SIZE_BYTES: Final = 256 * MIB
"""The default bound on the size of a capture."""
SNAP_BYTES: Final = 256
"""How much of a packet is kept by default: all headers, and some of the payload."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to capture, and when to stop."""

    wires: Sequence[Wire]
    wanted: PacketFilter = field(default_factory=PacketFilter)
    """Which packets on these links; its `ports` are ignored."""
    clock: Clock = "fabric"
    snap_bytes: int = SNAP_BYTES
    packets_max: int | None = None
    size_bytes_max: int = SIZE_BYTES
    """The largest size of the whole file."""
    for_ns: int | None = None
    """For how much fabric time; None: no bound."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a capture."""

    packets: int
    size_bytes: int
    lost: int
    """How many wanted packets the taps had no room for."""
    again: tuple[str, ...]
    """Nodes whose tap was set again after they had been down."""
    silent: tuple[str, ...]
    """Nodes that did not answer at the end: the packets that they had not handed over are missing."""
    why: str
    """What ended the capture."""


async def capture(
    fabric: Verbs, request: Request, sink: Sink, stop: asyncio.Event, begun: Callable[[], None] = lambda: None
) -> Outcome:
    """Capture into `sink` until a bound is reached or `stop` is set.

    Calls `begun` when all taps are set: packets sent from then on are captured. Raises RefusedError when a node refuses
    another tap, or the file cannot be written any more.
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
        """From when (exclusive) until when packets are wanted."""
        self._asleep = False
        self._looked_wall_s = 0.0
        """How long the latest look took."""
        self._why = ""
        self._enough = False
        """Whether a bound has been reached, so that later packets are not wanted."""

    async def run(self, begun: Callable[[], None]) -> Outcome:
        """Run the whole capture, from the taps to the last block."""
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
                # The taps were set one after the other; only from now on all links are captured.
                self._from_ns = (await self._fabric.clock()).front_ns
                self._until_ns = self._from_ns + self._request.for_ns
            await self._flush()
            last_looks = 0
            while not self._why:
                await self._wait()
                # Packets from before the signal are wanted, so look once more after it.
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
        # The clock may be ahead of the packets that nodes have handed over.
        if min(now_ns, self._taps.complete_ns) > self._until_ns:
            self._end("the time is over", enough=True)

    def _take_rest(self) -> None:
        """Take the packets that are still waiting, unless a bound has been reached."""
        if not self._enough:
            self._take(self._taps.rest(), 0)

    def _end(self, why: str, *, enough: bool = False) -> None:
        self._why = self._why or why
        self._enough = self._enough or enough

    async def _flush(self) -> None:
        """Write what there is. A signal ends the wait for a reader that does not read."""
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
