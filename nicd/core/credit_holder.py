"""When a NIC on InfiniBand keeps credit back: because its host takes packets more slowly than they come, or because it
is broken.

Owns the model of a slow receiver, and of a port that grants nothing more. `credit_ports` has buffers and credits. A NIC
whose host keeps up frees the blocks of a packet as it comes.

A slow receiver drains its receive buffer at a fixed rate, whatever port the bytes came in by. The blocks of a packet
that came with more than `buffer_bytes` in front of it are freed when the buffer has come down to that. Packets take
effect when they arrive; only how fast the next ones may come is modelled, as in `nicd.core.pause_sender` for RoCE.

IBTA 7.9.4 (credits).
"""

from collections import deque

from mrcfabric.glance import SLOW_RECEIVER, STORM, AskGlance
from mrcfabric.units import NS_PER_S, Instant
from nicd.core.credit_ports import CreditPorts
from nicd.core.timers import Timer, Timers


class CreditHolder:
    """What one NIC does with the blocks of packets that have come."""

    __slots__ = (
        "_asked", "_buffer_bytes", "_causes", "_held", "_kept", "_ports", "_rate_bps", "_seen_ns", "_storm", "_timer",
        "_total", "_waiting", "withheld",
    )  # fmt: skip

    def __init__(self, timers: Timers, ports: CreditPorts) -> None:
        self._ports = ports
        self._storm = 0  # bit p: port p grants nothing
        self._kept: dict[int, list[tuple[int, int]]] = {}
        """By port in a storm: (VL, blocks)."""
        self._rate_bps = 0
        self._buffer_bytes = 0
        self._held = 0
        """Bits in the receive buffer times NS_PER_S, at `_seen_ns`."""
        self._total = 0
        """All bits that ever came to a slow receiver, times NS_PER_S."""
        self._seen_ns: Instant = 0
        self._waiting: deque[tuple[int, int, int, int]] = deque()
        """(`_total` with this packet, port, VL, blocks) of packets whose blocks are not free yet, in order."""
        self.withheld = [0] * ports.count
        """By port: packets whose credit was kept back."""
        self._asked: dict[tuple[int, int], int] = {}
        """(port, VL): how often credit came to be kept back there."""
        self._causes: dict[tuple[int, int], str] = {}
        self._timer = Timer(timers, self._on_timer)

    def done(self, now: Instant, port: int, vl: int, blocks: int, size: int) -> None:
        """The transport has dealt with a packet: free its blocks, now or later."""
        if self._storm >> port & 1:
            self._keep(port, vl, STORM)
            self._kept.setdefault(port, []).append((vl, blocks))
            return
        if not self._rate_bps:
            self._ports.freed(now, port, vl, blocks)
            return
        self._settle(now)
        bits = size * 8 * NS_PER_S
        self._held += bits
        self._total += bits
        if not self._waiting and self._held <= self._buffer_bytes * 8 * NS_PER_S:
            self._ports.freed(now, port, vl, blocks)
            return
        self._keep(port, vl, SLOW_RECEIVER)
        self._waiting.append((self._total, port, vl, blocks))
        if len(self._waiting) == 1:
            self._plan(now)

    def set_rate(self, now: Instant, rate_bps: int, buffer_bytes: int) -> None:
        """From now on the host takes so many bits per second out of a buffer of this size; 0: as many as come."""
        self._settle(now)
        self._rate_bps, self._buffer_bytes = rate_bps, buffer_bytes
        if not rate_bps:
            self._held = 0
        self._free(now)

    def set_storm(self, now: Instant, port: int, on: bool) -> None:
        """A port begins to grant nothing, or to do so again."""
        self._storm = self._storm | 1 << port if on else self._storm & ~(1 << port)
        for vl, blocks in () if on else self._kept.pop(port, ()):
            self._ports.freed(now, port, vl, blocks)

    def glances(self) -> list[AskGlance]:
        """An `AskGlance` of each port and VL where credit has ever been kept back; the cause is the latest one."""
        asking = self._asking()
        return [
            AskGlance(port, vl, times, int((port, vl) in asking), self._causes[port, vl])
            for (port, vl), times in sorted(self._asked.items())
        ]

    def _asking(self) -> set[tuple[int, int]]:
        """Ports and VLs where credit is kept back now."""
        found = {(port, vl) for _, port, vl, _ in self._waiting}
        return found | {(port, vl) for port, kept in self._kept.items() for vl, _ in kept}

    def _keep(self, port: int, vl: int, cause: str) -> None:
        self.withheld[port] += 1
        self._asked[port, vl] = self._asked.get((port, vl), 0) + 1
        self._causes[port, vl] = cause

    def _settle(self, now: Instant) -> None:
        """Take out of the buffer what has left it by now."""
        self._held = max(0, self._held - (now - self._seen_ns) * self._rate_bps)
        self._seen_ns = now

    def _on_timer(self, now: Instant) -> None:
        self._settle(now)
        self._free(now)

    def _free(self, now: Instant) -> None:
        """Free the blocks of packets that have no more in front of them than the buffer holds."""
        waiting, room = self._waiting, self._buffer_bytes * 8 * NS_PER_S
        while waiting and (not self._rate_bps or waiting[0][0] - (self._total - self._held) <= room):
            _, port, vl, blocks = waiting.popleft()
            self._ports.freed(now, port, vl, blocks)
        self._plan(now)

    def _plan(self, now: Instant) -> None:
        if not self._waiting:
            self._timer.cancel()
            return
        over = self._waiting[0][0] - (self._total - self._held) - self._buffer_bytes * 8 * NS_PER_S
        self._timer.set(now + max(1, -(-over // self._rate_bps)))
