"""The responder's memory of PSNs: what has arrived, in one integer, and the picture of it that a SACK carries.

Owns the tracking window, classification of an arriving PSN, the cumulative point and the 64-bit bitmap. `sack_spans`
keeps what waits for the next SACK, `responder` decides when one is due, and `mrcfabric.wire` has its layout. MRC 1.0
section 3 (tracking window), 7.5 (SETH).
"""

from typing import Final

from mrcfabric.wire.layout import PSN_MASK
from nicd.core.stats import Distances

HALF_PSN: Final = (PSN_MASK + 1) >> 1
BITMAP_BITS: Final = 64
BITMAP_MASK: Final = (1 << BITMAP_BITS) - 1
# UEC PDS: rcvd_bytes travels in units of 256 bytes, rounded up, modulo 2**24.
RCVD_SHIFT: Final = 8
RCVD_MASK: Final = 0xFFFFFF

NEW: Final = 0
DUPLICATE: Final = 1
OUTSIDE: Final = 2


class ReceiveWindow:
    """PSNs received on one QP. `expected` is unbounded; 24 bits of a PSN travel."""

    __slots__ = ("_ahead", "_bits", "_mpr", "_span_peak", "expected", "ooo_count")

    def __init__(self, psn_first: int, mpr_psns: int, ahead: Distances | None = None) -> None:
        """`ahead`: counts packets out of order."""
        self.expected = psn_first
        """The lowest PSN that has not arrived: cack + 1."""
        self.ooo_count = 0
        """Packets held out of order."""
        self._bits = 0
        """Bit i: expected + i has arrived. Bit 0 is never set."""
        self._mpr = mpr_psns
        self._span_peak = 0
        self._ahead = Distances() if ahead is None else ahead

    @property
    def span(self) -> int:
        """Bits of the bitmap in use: from the lowest PSN that has not arrived to the highest that has."""
        return self._bits.bit_length()

    @property
    def span_peak(self) -> int:
        """The most bits that were ever in use."""
        return self._span_peak

    @property
    def cack(self) -> int:
        """The highest PSN received in order (before the first packet: the first PSN - 1)."""
        return self.expected - 1

    def classify(self, psn24: int) -> tuple[int, int]:
        """(verdict, PSN): NEW, DUPLICATE (arrived before) or OUTSIDE (beyond the window, or impossibly old)."""
        ahead = (psn24 - self.expected) & PSN_MASK
        if ahead < self._mpr:
            verdict = DUPLICATE if self._bits >> ahead & 1 else NEW
            return verdict, self.expected + ahead
        # MRC 1.0 section 3: beyond the window, or older than half the number space.
        if ahead <= HALF_PSN:
            return OUTSIDE, self.expected + ahead
        return DUPLICATE, self.expected + ahead - PSN_MASK - 1

    def receive(self, psn: int) -> None:
        """A NEW PSN arrives."""
        ahead = psn - self.expected
        if ahead:
            self._bits |= 1 << ahead
            self.ooo_count += 1
            self._ahead.add(ahead)
            if ahead >= self._span_peak:
                self._span_peak = ahead + 1
            return
        bits = self._bits
        if not bits:
            self.expected += 1
            return
        bits |= 1
        # How many ones stand at the low end.
        run = ((bits + 1) & ~bits).bit_length() - 1
        self.expected += run
        self.ooo_count -= run - 1
        self._bits = bits >> run

    def bitmap(self, psn: int, recent: bool) -> tuple[int, int]:
        """(offset from cack, bitmap) for a SACK caused by `psn`.

        `recent`: based at max(PSN - 63, cack + 1), so that the newest arrivals are in it; else always at cack + 1.
        """
        ahead = psn - (BITMAP_BITS - 1) - self.expected
        if not recent or ahead < 0:
            ahead = 0
        return ahead + 1, self._bits >> ahead & BITMAP_MASK

    def bitmaps(self, most: int) -> list[tuple[int, int]]:
        """(offset from cack, bitmap) of SACKs that together show all that has arrived, at most `most` of them.

        The first is always there and based at cack + 1; of the others those without a bit are left out.
        """
        shown = [(1, self._bits & BITMAP_MASK)]
        bits = self._bits >> BITMAP_BITS
        offset = 1 + BITMAP_BITS
        while bits and len(shown) < most:
            if bits & BITMAP_MASK:
                shown.append((offset, bits & BITMAP_MASK))
            bits >>= BITMAP_BITS
            offset += BITMAP_BITS
        return shown
