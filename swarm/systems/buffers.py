"""The account of a lossless switch at every instant, and what it may not drop.

The account of each (ingress port, class) is what waits in the egresses with that origin, byte by byte; the pool is the
sum of the shares; nobody holds more than there is. With headroom that is at least the exact one, no packet of a
lossless class is dropped for want of room.

Excused is a port from the first instant on at which its link or its neighbour was struck by something that loses,
delays or forgets a pause, or sends more than the rate (`links_struck`); a port whose neighbour's watchdog has stopped
obeying; and every port where frames are copied, harmed or late by chance (`Case.unruly`).
"""

from collections.abc import Callable
from typing import Any

from mrcfabric.class_egress_config import CLASSES
from mrcfabric.egress_queues import CONTROL_FULL, DATA_FULL
from mrcfabric.node import Input, Transmit
from mrcfabric.units import Instant
from swarm.invariant import InvariantError
from swarm.systems import inside
from switchd.core.buffer import FULL, NO_HEADROOM
from switchd.core.lossless import LosslessSwitch


class BufferAccount:
    """The checks of one switch."""

    def __init__(self, switch: LosslessSwitch, excused: Callable[[int, Instant], bool]) -> None:
        """`excused`: a port, and an instant up to which nothing must have struck it."""
        self._switch = switch
        self._excused = excused
        self._seen: tuple[int, ...] = ()
        self._dropped = 0

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Nothing to remember."""

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Raises InvariantError."""
        buffer = self._switch.buffer
        seen = (buffer.total, self._switch.received, len(transmits))
        if seen != self._seen or transmits:
            self._seen = seen
            self._balance(at_ns)
            self._bounds(at_ns)
        self._lossless(at_ns)

    def _broken(self, invariant: str, at_ns: Instant, what: str) -> InvariantError:
        return InvariantError(invariant, self._switch.name, at_ns, what)

    def _balance(self, at_ns: Instant) -> None:
        buffer = self._switch.buffer
        by_pair, where = inside.queued(self._switch)
        for pair, waiting in enumerate(by_pair):
            held = buffer.stock[pair] + buffer.headroom[pair]
            if held != waiting:
                port, cls = divmod(pair, CLASSES)
                what = f"port {port} class {cls}: the buffer has {held} bytes, {waiting} wait"
                raise self._broken("buffer", at_ns, what)
        if where != inside.told_where(self._switch):
            raise self._broken("buffer", at_ns, f"waits {where}, the switch says {inside.told_where(self._switch)}")
        total = sum(buffer.stock) + sum(buffer.headroom)
        if total != buffer.total:
            raise self._broken("buffer", at_ns, f"{buffer.total} bytes in all, {total} counted")
        shares = sum(max(0, stock - buffer.config.reserved_bytes) for stock in buffer.stock)
        if shares != buffer.pool_used:
            raise self._broken("buffer", at_ns, f"{buffer.pool_used} bytes of the pool used, {shares} counted")

    def _bounds(self, at_ns: Instant) -> None:
        buffer = self._switch.buffer
        if buffer.total > buffer.config.bytes_total:
            raise self._broken("bounds", at_ns, f"{buffer.total} bytes in a buffer of {buffer.config.bytes_total}")
        for pair, held in enumerate(buffer.headroom):
            port, cls = divmod(pair, CLASSES)
            if held > buffer.config.headroom_bytes[port]:
                raise self._broken("bounds", at_ns, f"port {port} class {cls}: {held} bytes of headroom in use")
            if held and not buffer.xoff[pair]:
                raise self._broken("pauses", at_ns, f"port {port} class {cls}: headroom in use, and it is not XOFF")

    def _lossless(self, at_ns: Instant) -> None:
        switch, buffer = self._switch, self._switch.buffer
        ours = buffer.config.lossless
        dropped = sum(sum(pairs) for pairs in buffer.drops.values())
        dropped += sum(port.drops[DATA_FULL] + port.drops[CONTROL_FULL] for port in switch.egress)
        if dropped == self._dropped:
            return
        self._dropped = dropped
        for port in range(len(switch.egress)):
            for cls in ours:
                pair = port * CLASSES + cls
                if buffer.drops[FULL][pair]:
                    raise self._broken("lossless", at_ns, f"port {port} class {cls}: a packet dropped, buffer full")
                if buffer.drops[NO_HEADROOM][pair] and not self._excused(port, at_ns):
                    what = f"port {port} class {cls}: a packet dropped, {buffer.headroom[pair]} bytes of headroom used"
                    raise self._broken("lossless", at_ns, what)
        if set(ours) == set(range(CLASSES)) and any(port.drops[DATA_FULL] for port in switch.egress):
            raise self._broken("lossless", at_ns, "a full queue has dropped a packet of a lossless class")
