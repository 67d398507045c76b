"""A window that grows over a round trip, step by step, and not at once.

Owns what a context is still to get. A window that opens at once leaves as a burst at the rate of the port. Where the
up-links of a rack hold less than its NICs, such a burst overflows the queues, and what remains of it stays a burst:
acknowledgements come back as the packets went out, with a gap behind them for the rest of a long round trip.

How much a rack holds is not known, but the other planes send at a rate that they have found, and most fabrics have no
more than twice as many ports below as above. So a window that more than doubles first grows up to what the others have,
or to half of what it asks for. A round trip later acknowledgements have come for all of that; it then grows on, unless
the network tells of a full queue.

A deliberate addition: NSCC has no window that grows by more than a few packets at once (UEC CMS).
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.units import NS_PER_S, Instant
from nicd.core.congestion.window import CongestionWindow
from nicd.core.timers import Timer, Timers

STEPS: Final = 64
"""In so many steps per round trip a window grows."""


class PacedGrowth:
    """The growth of one context."""

    __slots__ = (
        "_asked_ns",
        "_grown",
        "_left_bytes",
        "_round_ns",
        "_step_bytes",
        "_sure_bytes",
        "_timer",
        "_window",
        "busy_ns",
    )

    def __init__(self, window: CongestionWindow, timers: Timers, grown: Callable[[Instant], None]) -> None:
        """`grown` is called after each step."""
        self._window = window
        self._grown = grown
        self._timer = Timer(timers, self._step)
        self.busy_ns: Instant = -1
        """When a packet of this context last met a mark or a trim; the owner says so."""
        self._asked_ns: Instant = 0
        self._left_bytes = self._sure_bytes = 0
        """What the window is still to get; the first part of it in any case."""
        self._step_bytes = self._round_ns = 0

    def begin(self, now: Instant, size: int, round_trip_ns: int, others_bps: int) -> None:
        """Let the window grow by `size` bytes, and not by what an earlier call has left.

        `others_bps`: at what rate another plane sends to the same destination; 0: none does.
        """
        cwnd = self._window.cwnd_bytes
        sure = size
        if size > cwnd:
            sure = min(size, max(others_bps * round_trip_ns // (8 * NS_PER_S), (cwnd + size) >> 1) - cwnd)
        self._asked_ns, self._round_ns = now, round_trip_ns
        self._left_bytes, self._sure_bytes = size, sure
        self._step_bytes = sure // STEPS + 1
        self._timer.set(now + round_trip_ns // STEPS + 1)

    def _step(self, now: Instant) -> None:
        if self._sure_bytes <= 0 and self.busy_ns >= self._asked_ns:
            return
        size = min(self._step_bytes, self._left_bytes)
        self._left_bytes -= size
        self._sure_bytes -= size
        self._window.grow(size)
        if self._left_bytes:
            # Acknowledgements of what was sure come within a round trip.
            is_half_way = self._sure_bytes <= 0 < self._sure_bytes + size
            self._timer.set(now + (self._round_ns if is_half_way else self._round_ns // STEPS + 1))
        self._grown(now)
