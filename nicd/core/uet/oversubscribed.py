"""OCCC: grants slow down while the fabric, and not the receiver's port, is what is short.

Owns the share of its ports' rate at which a receiver grants. About once per round trip it looks at what has come since.
The share of packets that were trimmed before their last hop is taken off at once. The marked part of the full packets,
smoothed, lowers the rate in proportion to what it has above a target. In a period without either the rate rises by a
step; it may double from one such period to the next while nothing at all is marked. Periods are drawn, or receivers
behind one link would move in step. UEC 1.0 3.6.14 (RCCC under oversubscription); the law and its constants are those of
the consortium's simulator.
"""

from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from nicd.core.settings import NicSettings

WHOLE: Final = 1_000_000
"""The share is counted in millionths."""
_PPT: Final = 1_000
_IDLE_MAX: Final = 64
"""After so many periods without a packet nothing changes any more, or only by steps that are set very small."""


class Oversubscribed:
    """What one receiver makes of marks and trims inside the fabric."""

    __slots__ = ("_average", "_came", "_decrease", "_doublings", "_floor", "_gain", "_increase", "_marked", "_risen",
                 "_rng", "_target", "_trimmed", "_whole", "period_ns", "share", "until_ns")  # fmt: skip

    def __init__(self, settings: NicSettings, rng: Rng) -> None:
        self._target = settings.uet_occc_target_ppt * _PPT
        self._increase = settings.uet_occc_increase_ppt * _PPT
        self._decrease = settings.uet_occc_decrease_ppt
        self._gain = settings.uet_occc_gain_ppt
        self._doublings = settings.uet_occc_doublings
        self._floor = settings.uet_occc_floor_ppt * _PPT
        self.period_ns = settings.base_rtt_ns
        """Length of a period, on average."""
        self._rng = rng
        self.until_ns: Instant = -1
        """End of the period under way; -1: the first has not begun."""
        self._came = self._whole = self._marked = self._trimmed = 0
        """Packets of the period under way: all, those that came whole, of these the marked ones; those trimmed inside
        the fabric."""
        self._risen = 0
        """Periods in a row that ended with a rise."""
        self._average = 0
        """Smoothed share of marked packets, in millionths."""
        self.share = WHOLE
        """Of the ports' rate, at which to grant."""

    def saw(self, now: Instant, marked: bool, trimmed: bool, in_fabric: bool) -> None:
        """A data packet has come: marked or not, whole or `trimmed`, and if so `in_fabric` or on its last hop."""
        self.look(now)
        self._came += 1
        if trimmed:
            self._trimmed += in_fabric
        else:
            self._whole += 1
            self._marked += marked

    def look(self, now: Instant) -> None:
        """End the periods that are over by `now`."""
        if self.until_ns < 0:
            self.until_ns = now + self._drawn()
        for _ in range(_IDLE_MAX):
            if now < self.until_ns:
                return
            self._period_over()
            self.until_ns += self._drawn()
        self.until_ns = max(self.until_ns, now + self._drawn())

    def _drawn(self) -> int:
        return self.period_ns * 3 // 4 + self._rng.below(self.period_ns // 2 + 1)

    def _period_over(self) -> None:
        share, marks = self.share, self._marked
        fraction = marks * WHOLE // self._whole if self._whole else 0
        self._average += (fraction - self._average) * self._gain // _PPT
        falls = False
        if self._trimmed:
            share -= self._trimmed * WHOLE // self._came
            falls = True
        above = self._average - self._target
        if above > 0:
            share -= share * above // WHOLE * self._decrease // _PPT
            falls = True
        if falls:
            self._risen = 0
        else:
            share += self._increase << (0 if marks else min(self._risen, self._doublings))
            self._risen += 1
        self.share = max(self._floor, min(share, WHOLE))
        self._came = self._whole = self._marked = self._trimmed = 0
