"""Packets received that no SACK has shown yet, in spans of which one bitmap shows each.

Owns which of them share a SACK, and which has waited longest. When a SACK is due is `responder`'s, the bitmap `sack`'s.

A bitmap shows 64 PSNs. Sprayed packets are further apart than that as soon as some paths have queues, the more so the
smaller they are: whoever acknowledged what does not fit would send one SACK per packet just then, and these go ahead
of data. Several spans wait side by side instead, and SACKs stay as rare as MRC 1.0 3 has them.
"""

from mrcfabric.units import Instant
from mrcfabric.wire.layout import PSN_MASK
from nicd.core.sack import BITMAP_BITS


class Span:
    """Packets that one bitmap shows."""

    __slots__ = ("ev", "first_ns", "high", "last_ns", "low", "psn", "stamp")

    def __init__(self, now: Instant, psn: int) -> None:
        self.first_ns = now
        """When the first came."""
        self.low = self.high = psn
        """The least and the greatest PSN."""
        self.psn = psn
        """Of the last to come, which will be the SACK's cause, as are these three."""
        self.ev = self.stamp = 0
        self.last_ns: Instant = now


class Waiting:
    """All that waits for its SACK on one QP."""

    __slots__ = ("_width", "counted", "spans")

    def __init__(self, recent: bool) -> None:
        """`recent`: bitmaps show the newest arrivals, and so can leave out what came long before."""
        self._width = BITMAP_BITS if recent else PSN_MASK
        self.counted = 0
        """Bytes received since the last SACK, as the threshold counts them."""
        self.spans: list[Span] = []
        """The one that was opened first is first."""

    def add(self, now: Instant, psn: int, ev: int, stamp: int, counted: int, expected: int) -> None:
        """A packet waits, too. What is below `expected` needs no bit."""
        self.counted += counted
        for span in self.spans:
            if psn > span.high:
                if psn - span.low >= self._width and psn - max(span.low, expected) >= self._width:
                    continue
                span.high = psn
            elif psn < span.low:
                if span.high - psn >= self._width and span.high - max(psn, expected) >= self._width:
                    continue
                span.low = psn
            break
        else:
            span = Span(now, psn)
            self.spans.append(span)
        span.psn = psn
        span.ev = ev
        span.stamp = stamp
        span.last_ns = now

    def next(self, expected: int) -> Span:
        """Whose turn it is: the span opened first of those that need a bit, or any if none does. There must be one."""
        for span in self.spans:
            if span.high >= expected:
                return span
        return self.spans[-1]

    def shown(self, psn: int, expected: int) -> int:
        """A SACK caused by `psn` is sent: forget what it shows; the highest PSN that its bitmap must reach."""
        low = high = psn
        left = []
        for span in self.spans:
            # What is in order by now is told by the cumulative point of any SACK.
            if span.high < expected:
                continue
            least, most = min(low, span.low), max(high, span.high)
            if most - least < self._width or most - max(least, expected) < self._width:
                low, high = least, most
            else:
                left.append(span)
        self.spans = left
        self.counted = 0
        return high

    def shown_below(self, psn: int) -> None:
        """SACKs were sent that show all below `psn`."""
        self.spans = [span for span in self.spans if span.high >= psn]
        self.counted = 0
