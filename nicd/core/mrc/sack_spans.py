"""Received packets that no SACK has shown yet, in spans: one bitmap can show all packets of a span.

Owns which packets share a SACK, and which span has waited longest. `responder` decides when a SACK is due, `sack` makes
the bitmap.

A bitmap shows 64 PSNs. As soon as some paths have queues, sprayed packets are further apart than that, the more so the
smaller they are. A responder that sent a SACK for each packet which does not fit would then send one SACK per packet,
and SACKs go ahead of data. So several spans wait side by side, and SACKs stay as rare as MRC 1.0 3 has them.
"""

from mrcfabric.units import Instant
from mrcfabric.wire.layout import PSN_MASK
from nicd.core.mrc.sack import BITMAP_BITS


class Span:
    """Packets that one bitmap can show."""

    __slots__ = ("ev", "first_ns", "high", "last_ns", "low", "psn", "stamp")

    def __init__(self, now: Instant, psn: int) -> None:
        self.first_ns = now
        """When the first packet came."""
        self.low = self.high = psn
        """The least and the greatest PSN."""
        self.psn = psn
        """PSN of the packet that came last, which will cause the SACK; the next three fields are of it, too."""
        self.ev = self.stamp = 0
        self.last_ns: Instant = now


class Waiting:
    """All packets of one QP that wait for a SACK."""

    __slots__ = ("_width", "counted", "spans")

    def __init__(self, recent: bool) -> None:
        """`recent`: bitmaps show the newest arrivals, so they may leave out packets that came long before."""
        self._width = BITMAP_BITS if recent else PSN_MASK
        self.counted = 0
        """Bytes received since the last SACK, as the threshold counts them."""
        self.spans: list[Span] = []
        """In the order in which they were opened."""

    def add(self, now: Instant, psn: int, ev: int, stamp: int, counted: int, expected: int) -> None:
        """Let a packet wait. PSNs below `expected` need no bit."""
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
        """The span whose turn it is: the oldest that needs a bit, or any if none does. There must be a span."""
        for span in self.spans:
            if span.high >= expected:
                return span
        return self.spans[-1]

    def shown(self, psn: int, expected: int) -> int:
        """Forget what a SACK caused by `psn` shows. Returns the highest PSN that its bitmap must reach."""
        low = high = psn
        left = []
        for span in self.spans:
            # The cumulative point of any SACK tells of packets that are in order by now.
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
        """Forget every packet below `psn`: SACKs that show them were sent."""
        self.spans = [span for span in self.spans if span.high >= psn]
        self.counted = 0
