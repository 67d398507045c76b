"""Which QP sends next on which port.

Owns the ring of QPs that have something to send. Every port with room pulls: the QP at the head of the ring chooses a
plane among the free ones and an EV in it, and a packet is made at that instant and not before. Round robin by packet
among QPs; inside a QP the requestor puts retransmissions first (MRC 1.0: a higher class than new data).
"""

from collections import deque
from typing import Protocol

from mrcfabric.units import Instant
from nicd.core.ports import Ports


class Windows(Protocol):
    """What limits the packets of a QP beside its ports."""

    open: int
    """Bit p: a packet may leave by plane p."""


class Sender(Protocol):
    """What the scheduler asks of a QP."""

    waiting: bool
    """True while it is in the ring; only the scheduler sets it."""
    qpn: int
    planes: int
    """Bit p: plane p can carry data of this QP."""

    @property
    def windows(self) -> Windows:
        """What limits it; several QPs to one destination may share that."""
        ...

    def has_packet(self) -> bool:
        """Whether a packet may leave, if a port and its plane's window have room."""
        ...

    def pick_plane(self, mask: int) -> int:
        """One of the planes in `mask`."""
        ...

    def emit(self, now: Instant, plane: int) -> bytearray:
        """The next packet, made for this plane. Only after `has_packet`."""
        ...


class Scheduler:
    """The ring of one NIC."""

    __slots__ = ("_ports", "_ring", "_useless")

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._ring: deque[Sender] = deque()
        self._useless = 0
        """Bit p: no QP in the ring can use port p now; spares `pump` a look at all of them."""

    def wake(self, sender: Sender) -> None:
        """`sender` may have become able to send."""
        usable = sender.planes & sender.windows.open
        if usable and (sender.waiting or sender.has_packet()):
            self._useless &= ~usable
            if not sender.waiting:
                sender.waiting = True
                self._ring.append(sender)

    @property
    def busy(self) -> bool:
        """Whether any QP has something to send."""
        return bool(self._ring)

    def forget(self, sender: Sender) -> None:
        """`sender` is gone or must not send any more."""
        if sender.waiting:
            sender.waiting = False
            self._ring.remove(sender)

    def pump(self, now: Instant) -> None:
        """Fill every port that has room, as long as a QP has a packet for it."""
        ring = self._ring
        ports = self._ports
        if not ports.tracking:
            ports.track(now)
        refused = 0
        while (room := ports.room & ~self._useless) and ring:
            sender = ring[0]
            usable = sender.planes & sender.windows.open
            mask = room & usable
            if mask and sender.has_packet():
                plane = sender.pick_plane(mask)
                ports.offer(now, plane, sender.emit(now, plane), False)
                ring.rotate(-1)
                refused = 0
            elif mask or not usable:
                # This QP has nothing more to send, or other QPs have used up the windows that they share with it.
                ring.popleft()
                sender.waiting = False
            else:
                ring.rotate(-1)
                refused += 1
                if refused >= len(ring):
                    self._useless |= room
        if not ring:
            ports.tracking = False
