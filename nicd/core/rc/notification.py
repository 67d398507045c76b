"""DCQCN's notification point: when a QP that receives marked packets tells its sender so.

The first marked packet makes a notification at once, and further ones not before the interval is over. DCQCN
(SIGCOMM'15) section 3.1; IBTA annex A17.9.
"""

from mrcfabric.units import Instant


class NotificationPoint:
    """One QP's receiving side."""

    __slots__ = ("_interval_ns", "_next_ns")

    def __init__(self, interval_ns: int) -> None:
        self._interval_ns = interval_ns
        self._next_ns: Instant = 0

    def marked(self, now: Instant) -> bool:
        """A marked packet has come. Whether to send a notification now."""
        if now < self._next_ns:
            return False
        self._next_ns = now + self._interval_ns
        return True
