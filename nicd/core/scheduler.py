"""Which QP sends next on which port.

Owns the ring of QPs that have something to send. Every port with room pulls: the QP at the head of the ring chooses a
plane among the free ones and an EV in it, and a packet is made at that instant and not before. Round robin by packet
among QPs; inside a QP the requestor puts retransmissions first (MRC 1.0: a higher class than new data).
"""

from collections import deque
from typing import Protocol

from mrcfabric.units import Instant
from nicd.core.ports import Ports


class Sender(Protocol):
    """What the scheduler asks of a QP."""

    waiting: bool
    """True while it is in the ring; the scheduler's own mark."""
    qpn: int
    planes: int
    """Bit p: plane p can carry data of this QP."""

    def can_send(self) -> bool:
        """There is a packet that may leave now, if a port has room."""
        ...

    def pick_plane(self, mask: int) -> int:
        """One of the planes in `mask`."""
        ...

    def emit(self, now: Instant, plane: int) -> bytearray:
        """The next packet, made for this plane. Only after `can_send`."""
        ...


class Scheduler:
    """The ring of one NIC."""

    __slots__ = ("_ports", "_ring")

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._ring: deque[Sender] = deque()

    def wake(self, sender: Sender) -> None:
        """`sender` may have become able to send."""
        if not sender.waiting and sender.can_send():
            sender.waiting = True
            self._ring.append(sender)

    @property
    def busy(self) -> bool:
        """Somebody has something to send."""
        return bool(self._ring)

    def forget(self, sender: Sender) -> None:
        """`sender` is gone or must not send any more."""
        if sender.waiting:
            sender.waiting = False
            self._ring.remove(sender)

    def pump(self, now: Instant) -> None:
        """Fill every port that has room, as long as somebody has something for it."""
        ring = self._ring
        ports = self._ports
        if not ports.tracking:
            ports.track(now)
        refused = 0
        while ports.room and refused < len(ring):
            sender = ring[0]
            mask = ports.room & sender.planes
            if not mask:
                ring.rotate(-1)
                refused += 1
                continue
            refused = 0
            if not sender.can_send():
                # Another QP has used up the window they share.
                ring.popleft()
                sender.waiting = False
                continue
            plane = sender.pick_plane(mask)
            ports.offer(now, plane, sender.emit(now, plane), False)
            ring.rotate(-1)
        if not ring:
            ports.tracking = False
