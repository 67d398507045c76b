"""When a NIC asks its switches to pause: because it takes packets more slowly than they come, or because it is broken.

Owns the model of a slow receiver, and the storm. `class_ports` sends the frames, the switch obeys them. A NIC whose
host keeps up never pauses anybody.

A slow receiver drains its receive buffer at a fixed rate, whatever port the bytes came in by. What is in the buffer
above `buffer_bytes` makes it pause all ports; at half of that it lets them go on. The buffer holds what comes
meanwhile: no packet is lost in it, and packets take effect when they arrive. Only how fast the next ones may come is
modelled. In a storm a port says pause for as long as the storm lasts, whatever comes in. Both repeat a pause when half
of it is over.

IEEE 802.1Q 36 (priority-based flow control); the storm of a broken NIC is that of Guo et al. (SIGCOMM'16).
"""

from mrcfabric.glance import SLOW_RECEIVER, STORM, AskGlance
from mrcfabric.naming import port_mac
from mrcfabric.units import NS_PER_S, Buffer, Instant
from mrcfabric.wire.pfc import QUANTA_MAX, encode
from nicd.core.board import Board
from nicd.core.class_ports import ClassPorts
from nicd.core.onchip import Receive
from nicd.core.timers import Timer


class PauseSender:
    """The pauses that one NIC asks for."""

    __slots__ = (
        "_board", "_buffer_bytes", "_causes", "_drain", "_held", "_paused", "_ports", "_rate_bps", "_refresh",
        "_seen_ns", "_storm", "frames", "held_peak", "onward",
    )  # fmt: skip

    def __init__(self, board: Board, ports: ClassPorts, onward: Receive) -> None:
        self._board = board
        self._ports = ports
        self.onward = onward
        """Takes a packet whose turn it is."""
        self._storm = 0  # bit p: port p says pause whatever comes in
        self._paused = False  # the receive buffer says so
        self._rate_bps = 0
        self._buffer_bytes = 0
        self._held = 0
        """Bits in the receive buffer times NS_PER_S, at `_seen_ns`."""
        self._seen_ns: Instant = 0
        self.frames = [0] * ports.count
        """By port: pause frames sent that said stop."""
        self._causes = [SLOW_RECEIVER] * ports.count
        self.held_peak = 0
        """The most bytes that the receive buffer has held."""
        self._refresh = Timer(board.timers, self._repeat)
        self._drain = Timer(board.timers, self._drained)

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """A packet from a port: it takes its place in the buffer of a slow receiver, and goes on."""
        if self._rate_bps:
            self._settle(now)
            self._held += len(packet) * 8 * NS_PER_S
            held = self._held // (8 * NS_PER_S)
            self.held_peak = max(self.held_peak, held)
            if held > self._buffer_bytes and not self._paused:
                self._paused = True
                self._say(now)
            if self._paused:
                self._drain.set(now + self._until(self._buffer_bytes // 2))
        return self.onward(now, port, packet)

    def set_rate(self, now: Instant, rate_bps: int, buffer_bytes: int) -> None:
        """From now on the host takes so many bits per second out of a buffer of this size; 0: as many as come."""
        self._settle(now)
        self._rate_bps, self._buffer_bytes = rate_bps, buffer_bytes
        if not rate_bps:
            self._held = 0
            if self._paused:
                self._drained(now)
        elif self._paused:
            self._drain.set(now + self._until(buffer_bytes // 2))

    def set_storm(self, now: Instant, port: int, on: bool) -> None:
        """A port begins or ends to ask for a pause without a reason."""
        before = self._asking
        self._storm = self._storm | 1 << port if on else self._storm & ~(1 << port)
        self._changed(now, before)

    def glances(self) -> list[AskGlance]:
        """An `AskGlance` of each port that has ever asked for a pause; the cause is that of the latest frame."""
        asking = self._asking
        return [
            AskGlance(port, self._ports.data_class(port), frames, asking >> port & 1, self._causes[port])
            for port, frames in enumerate(self.frames)
            if frames
        ]

    @property
    def _asking(self) -> int:
        """Bit p: port p asks its neighbour to pause."""
        return (1 << self._ports.count) - 1 if self._paused else self._storm

    def _say(self, now: Instant) -> None:
        self._changed(now, self._storm)

    def _changed(self, now: Instant, before: int) -> None:
        """Send a pause by each port that asks now and did not `before`, and its end by each that no longer asks."""
        asking = self._asking
        for port in range(self._ports.count):
            if (asking ^ before) >> port & 1:
                self._send(now, port, QUANTA_MAX if asking >> port & 1 else 0)
        if not asking:
            self._refresh.cancel()
        elif asking & ~before:
            self._refresh.set_by(now + self._half_ns())

    def _repeat(self, now: Instant) -> None:
        asking = self._asking
        for port in range(self._ports.count):
            if asking >> port & 1:
                self._send(now, port, QUANTA_MAX)
        if asking:
            self._refresh.set(now + self._half_ns())

    def _drained(self, now: Instant) -> None:
        """The buffer has come down to where its ports may go on."""
        self._drain.cancel()
        before = self._asking
        self._paused = False
        self._changed(now, before)

    def _send(self, now: Instant, port: int, quanta: int) -> None:
        if quanta:
            self.frames[port] += 1
            self._causes[port] = STORM if self._storm >> port & 1 else SLOW_RECEIVER
        source = port_mac(self._board.config.name, port)
        cls = self._ports.data_class(port)
        self._ports.send_control(now, port, encode(source, {cls: quanta}))
        witness = self._board.witness
        if quanta and witness is not None:
            held = max(0, self._held - (now - self._seen_ns) * self._rate_bps)
            witness.asks_pause(now, port, cls, self._causes[port], held // (8 * NS_PER_S))

    def _half_ns(self) -> int:
        """Half of the shortest pause that a port of this NIC can ask for."""
        return min(self._ports.pause_ns(port, QUANTA_MAX) for port in range(self._ports.count)) // 2

    def _settle(self, now: Instant) -> None:
        """Take out of the buffer what has left it by now."""
        self._held = max(0, self._held - (now - self._seen_ns) * self._rate_bps)
        self._seen_ns = now

    def _until(self, level_bytes: int) -> int:
        """How long it takes until so many bytes are left, in nanoseconds."""
        over = max(0, self._held - level_bytes * 8 * NS_PER_S)
        return -(-over // self._rate_bps)
