"""The packets that wait at a port of an InfiniBand link: by VL and by the input on which they came.

Owns the order. Inputs of a VL take turns; packets of one input keep their order. Knows the next packet of each VL, and
since when a packet has been the next one of its input, which is what its life at the head is counted from. Whether it
may go, and who counts it, is the business of `mrcfabric.credit_egress`.

Source: IBTA 18.2.5.4 (life at the head of a queue).
"""

from collections import deque
from typing import Final, TypeAlias

from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.lrh import MANAGEMENT_VL, VLS

Entry: TypeAlias = tuple[Buffer, int | None]
"""A packet and its origin."""
INPUT_SHIFT: Final = 4
"""An origin is `input << 4 | VL` by which a packet came in."""


class VlQueues:
    """The queues of one port. Lists are indexed by VL."""

    __slots__ = ("_expiries", "_life_ns", "_queues", "_rings", "bytes", "peak", "sizes")

    def __init__(self, life_ns: int) -> None:
        """`life_ns`: how long a packet of a data VL may be the next one of its input; 0: for ever."""
        self._life_ns = life_ns
        self._queues: tuple[dict[int, deque[Entry]], ...] = tuple({} for _ in range(VLS))
        self._rings: tuple[deque[int], ...] = tuple(deque() for _ in range(VLS))
        """The inputs with packets, in the order of their turns."""
        self._expiries: deque[tuple[Instant, int, int, Buffer]] = deque()
        """(instant, VL, input, packet) in order of time; counts only while that packet is the next of its input."""
        self.bytes = [0] * VLS
        self.peak = [0] * VLS
        self.sizes = [0] * VLS
        """Bytes of the next packet; 0: none waits."""

    def count(self, vl: int) -> int:
        """Packets that wait."""
        return sum(map(len, self._queues[vl].values()))

    def append(self, now: Instant, vl: int, packet: Buffer, origin: int | None) -> bool:
        """Append a packet. True: it is the next one of its VL."""
        size = len(packet)
        self.bytes[vl] = waiting = self.bytes[vl] + size
        if waiting > self.peak[vl]:
            self.peak[vl] = waiting
        source = 0 if origin is None else origin >> INPUT_SHIFT
        queue = self._queues[vl].get(source)
        if queue is None:
            queue = self._queues[vl][source] = deque()
        queue.append((packet, origin))
        if len(queue) > 1:
            return False
        self._watch(now, vl, source, packet)
        ring = self._rings[vl]
        ring.append(source)
        if len(ring) > 1:
            return False
        self.sizes[vl] = size
        return True

    def take(self, now: Instant, vl: int) -> Entry:
        """Take the next packet of a VL; another input has its turn."""
        ring = self._rings[vl]
        source = ring.popleft()
        if len(self._queues[vl][source]) > 1:
            ring.append(source)
        return self._take(now, vl, source)

    def next_expiry_ns(self) -> Instant:
        """When the first packet has been the next one of its input for too long; NEVER: none will be."""
        expiries = self._expiries
        while expiries:
            expires_ns, vl, source, packet = expiries[0]
            queue = self._queues[vl][source]
            if queue and queue[0][0] is packet:
                return expires_ns
            expiries.popleft()
        return NEVER

    def take_expired(self, now: Instant) -> tuple[int, Entry]:
        """Take that packet; its VL, and the packet. Its input keeps its place among the turns."""
        _, vl, source, _ = self._expiries.popleft()
        if len(self._queues[vl][source]) == 1:
            self._rings[vl].remove(source)
        return vl, self._take(now, vl, source)

    def _take(self, now: Instant, vl: int, source: int) -> Entry:
        """Take the next packet of an input whose place among the turns is settled."""
        ring, queue = self._rings[vl], self._queues[vl][source]
        entry = queue.popleft()
        self.bytes[vl] -= len(entry[0])
        if queue:
            self._watch(now, vl, source, queue[0][0])
        self.sizes[vl] = len(self._queues[vl][ring[0]][0][0]) if ring else 0
        return entry

    def _watch(self, now: Instant, vl: int, source: int, packet: Buffer) -> None:
        if self._life_ns and vl != MANAGEMENT_VL:
            self._expiries.append((now + self._life_ns, vl, source, packet))
