"""A window that never binds, for senders that something else limits, as credits do: it only counts bytes in flight."""

from typing import Final

from mrcfabric.units import Instant
from nicd.core.congestion.window import CongestionWindow, WindowSetup

_ENDLESS: Final = 1 << 60


class OpenWindow(CongestionWindow):
    """One context."""

    __slots__ = ()

    def __init__(self, setup: WindowSetup) -> None:
        self.cwnd_bytes = _ENDLESS
        self.inflight_bytes = 0
        self.base_rtt_ns = self.rtt_ns = 0
        self.crowded_ns: Instant = -1

    @property
    def binds(self) -> bool:
        return False

    def on_sack(self, now: Instant, acked_bytes: int, marked: bool, rtt_ns: int | None, penalty: int) -> None:
        """Nothing moves it."""

    def on_base_rtt(self, now: Instant, rtt_ns: int) -> None:
        """As above."""

    def on_longer(self, extra_ns: int) -> int:
        """As above."""
        return 0

    def on_uneven(self, mean_ns: int) -> int:
        """As above."""
        return 0

    def grow(self, size: int) -> None:
        """As above."""

    def on_trim(self, now: Instant, size: int, last_hop: bool = True) -> None:
        self.crowded_ns = now

    def on_loss(self, now: Instant, size: int, gives_way: bool = False) -> None:
        """As above."""

    def record(self) -> dict[str, int]:
        return {}
