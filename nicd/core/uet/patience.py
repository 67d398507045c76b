"""How much longer than their settings allow one QP waits before it judges packets lost.

Owns what is learned from packets that came late: paths whose queues differ by more than the
settings foresee, links that are slow or whose delay varies. Acknowledgements say which transmission has come (UEC PDS,
flag retx).
"""

from typing import Final

from mrcfabric.units import Instant

_RAISED_MOST: Final = 8
"""The wait grows by no more than so many times `uet_reorder_ns`."""
_FALL_RTTS: Final = 8
"""It falls back by an eighth in so many base RTTs."""


class UetPatience:
    """The wait of one QP."""

    __slots__ = ("_fall_ns", "_fallen_ns", "_most_ns", "_reorder_ns", "raised_ns")

    def __init__(self, reorder_ns: int, base_rtt_ns: int) -> None:
        self._reorder_ns = reorder_ns
        self._most_ns = _RAISED_MOST * reorder_ns
        self._fall_ns = _FALL_RTTS * base_rtt_ns
        self._fallen_ns: Instant = 0
        """When it last fell."""
        self.raised_ns = 0
        """How much later than the settings allow packets may be."""

    @property
    def reorder_ns(self) -> int:
        """A packet is lost when one that was sent so much later has arrived."""
        return self._reorder_ns + self.raised_ns

    def late(self, now: Instant, late_ns: int) -> None:
        """A packet has come `late_ns` later than others."""
        needed_ns = late_ns - self._reorder_ns
        if needed_ns + (needed_ns >> 2) > self.raised_ns:
            self.raised_ns = min(needed_ns + (needed_ns >> 2), self._most_ns)
            self._fallen_ns = now

    def heard(self, now: Instant) -> None:
        """Time passes: what came late once need not stay so."""
        if self.raised_ns and now - self._fallen_ns >= self._fall_ns:
            self.raised_ns -= -(-self.raised_ns // 8)
            self._fallen_ns = now
