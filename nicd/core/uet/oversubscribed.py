"""OCCC: grants slow down while packets are trimmed inside the fabric, where a receiver's port is not what is short.

Owns the share of its ports' rate at which a receiver grants. Once per round trip it looks at the share of packets that
came trimmed before the last hop, smoothed; above a target the rate falls by a part of that share, below it rises by a
step. UEC 1.0 3.6.14 (RCCC under oversubscription); the law is recalled from the constants of the consortium's
simulator.
"""

from typing import Final

from mrcfabric.units import Instant
from nicd.core.settings import NicSettings

WHOLE: Final = 1_000_000
"""The share is counted in millionths."""
_PPT: Final = 1_000


class Oversubscribed:
    """What one receiver makes of trims inside the fabric."""

    __slots__ = ("_average", "_came", "_decrease", "_floor", "_gain", "_increase", "_period_ns", "_target", "_trimmed",
                 "_until_ns", "share")  # fmt: skip

    def __init__(self, settings: NicSettings) -> None:
        self._target = settings.uet_occc_target_ppt * _PPT
        self._increase = settings.uet_occc_increase_ppt * _PPT
        self._decrease = settings.uet_occc_decrease_ppt
        self._gain = settings.uet_occc_gain_ppt
        self._floor = settings.uet_occc_floor_ppt * _PPT
        self._period_ns = settings.base_rtt_ns
        self._until_ns: Instant = 0
        self._came = self._trimmed = 0
        self._average = 0
        """Smoothed share of packets that were trimmed inside the fabric."""
        self.share = WHOLE
        """Of the ports' rate, at which to grant."""

    def saw(self, now: Instant, trimmed: bool) -> None:
        """A data packet has come; `trimmed`: before its last hop."""
        if now >= self._until_ns:
            self._period_over()
            self._until_ns = now + self._period_ns
        self._came += 1
        self._trimmed += trimmed

    def _period_over(self) -> None:
        if not self._came:
            return
        share = self._trimmed * WHOLE // self._came
        self._average += (share - self._average) * self._gain // _PPT
        if self._average > self._target:
            self.share -= self.share * self._average // WHOLE * self._decrease // _PPT
        else:
            self.share += self._increase
        self.share = max(self._floor, min(self.share, WHOLE))
        self._came = self._trimmed = 0
