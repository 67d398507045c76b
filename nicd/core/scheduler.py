"""Which QP sends next on which port.

Owns the ring of QPs that have something to send. Every port with room pulls: the QP at the head of the ring chooses one
of the free ports, and a packet is made at that instant and not before. Round robin by packet among QPs; inside a QP the
requestor puts retransmissions first (MRC 1.0: a higher class than new data).
"""

from collections import deque

from mypy_extensions import mypyc_attr

from mrcfabric.units import Instant
from nicd.core.ports import Ports


@mypyc_attr(allow_interpreted_subclasses=True)
class Sender:
    """What the scheduler asks of a QP. Compiled code calls methods of a class faster than those of a protocol."""

    __slots__ = ("qpn", "waiting")

    waiting: bool
    """True while it is in the ring; only the scheduler sets it."""
    qpn: int

    def open_ports(self) -> int:
        """Bit p: a packet may leave by port p now, as far as paths and windows decide."""
        raise NotImplementedError

    def has_packet(self) -> bool:
        """Whether a packet may leave, if a port and the windows have room."""
        raise NotImplementedError

    def emit(self, now: Instant, ports: int) -> tuple[int, bytearray]:
        """(port, packet): the next packet, made for one of `ports`, which are among its open ones.

        Only after `has_packet`.
        """
        raise NotImplementedError


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
        usable = sender.open_ports()
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
            usable = sender.open_ports()
            mask = room & usable
            if mask and sender.has_packet():
                port, packet = sender.emit(now, mask)
                ports.offer(now, port, packet, False)
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
