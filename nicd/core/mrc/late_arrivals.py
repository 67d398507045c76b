"""First transmissions that were judged lost and may still arrive, and what follows when one does.

Owns their records. `inflight` says what was judged lost and what has arrived. A packet that comes late disproves what
was concluded from its loss: its path is longer than was known, or reorders; how late packets may be is learned anew;
and the QP excuses the EVs that were accused.

Where a path takes about as long as a packet waits until it is sent again, both transmissions arrive within moments, and
an acknowledgement that covers their PSN means either. SACKs say how many bytes of new packets the receiver has placed
(UEC PDS), and a retransmission is acknowledged as soon as it arrives, also when it is a duplicate. So if the PSN was
acknowledged when fewer bytes were there than when its retransmission came, the first transmission had arrived. In which
order the SACKs come back does not matter.
"""

from collections.abc import Sequence
from typing import Final

from mrcfabric.units import Instant
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.mrc.path_order import PathOrder
from nicd.core.mrc.path_records import PathRecords
from nicd.core.mrc.patience import Patience
from nicd.core.mrc.sack import RCVD_MASK
from nicd.core.mrc.sent import Sent

ORIGINALS_MAX: Final = 1024
"""Most records of first transmissions that were judged lost and may still arrive; beyond it the oldest goes."""


class LateArrivals:
    """The late packets of one QP."""

    __slots__ = ("_arrived", "_base_ns", "_doubtful", "_originals", "_path_order", "_patience", "_records", "_windows")

    def __init__(
        self, base_rtt_ns: int, records: PathRecords, patience: Patience, path_order: PathOrder, windows: PlaneWindows
    ) -> None:
        self._base_ns = base_rtt_ns
        self._records = records
        self._windows = windows
        self._patience = patience
        self._path_order = path_order
        self._originals: dict[int, Sent] = {}
        """PSN -> its first transmission."""
        self._doubtful: dict[int, tuple[Sent, int, Instant]] = {}
        """PSN that was acknowledged after it was sent again -> its first transmission, what the receiver had placed
        by then, and when an acknowledgement last came that did not know it."""
        self._arrived: list[Sent] = []
        """Those that have arrived, until `taken`."""

    def judged_lost(self, sent: Sent) -> None:
        """A transmission was judged lost; only the first one of a PSN may tell anything later."""
        if not sent.tries and sent.cause != "trim":
            if len(self._originals) >= ORIGINALS_MAX:
                del self._originals[next(iter(self._originals))]
            self._originals[sent.psn] = sent

    def acknowledged(self, now: Instant, sent: Sent) -> None:
        """A PSN has arrived, whose latest transmission is this one, by its first one.

        It was either not sent again, or a moment ago, and nothing comes back so soon.
        """
        original = self._originals.get(sent.psn) if sent.tries else sent
        if original is None:
            return
        if sent.tries - sent.trims <= 1:
            self._has_arrived(now, original, self._records.known_ns)

    def acknowledged_again(self, again: Sent, placed: int) -> None:
        """A PSN has arrived by this retransmission or by its first transmission.

        The SACK said that the receiver had placed `placed` units of 256 bytes, modulo 2**24.
        """
        original = self._originals.get(again.psn)
        # Of several retransmissions all but the last must have been trimmed.
        if original is not None and again.tries - again.trims == 1:
            if len(self._doubtful) >= ORIGINALS_MAX:
                del self._doubtful[next(iter(self._doubtful))]
            self._doubtful[again.psn] = original, placed, self._records.known_ns

    def came_again(self, now: Instant, psn: int, placed: int) -> None:
        """A retransmission of this PSN has caused a SACK, which says what the receiver had placed when it came."""
        known = self._doubtful.pop(psn, None)
        if known is not None and 0 < (placed - known[1]) & RCVD_MASK <= RCVD_MASK >> 1:
            self._has_arrived(now, known[0], known[2])

    def _has_arrived(self, now: Instant, original: Sent, known_ns: Instant) -> None:
        """A first transmission has arrived, and had not when an acknowledgement last came that did not know it."""
        if original.passed_ns:
            self._path_order.reordered(now, original)
            return
        # It took longer than until then: other acknowledgements may have been lost.
        took_ns = known_ns - original.sent_ns
        if took_ns - self._records.lag_of(original.ev) > self._base_ns:
            self._longer(now, original, took_ns)

    def caused(self, now: Instant, psn: int, index: int) -> None:
        """This PSN on the EV `index`, not sent again, has caused an acknowledgement."""
        sent = self._originals.get(psn)
        if sent is None or sent.ev != index:
            return
        del self._originals[psn]
        if sent.passed_ns:
            # Others came sooner by the same path, so the path is no longer than it was.
            self._patience.late(now - sent.sent_ns - self._records.lag_of(index))
            self._path_order.reordered(now, sent)
            self._arrived.append(sent)
        else:
            self._longer(now, sent, now - sent.sent_ns)
            self._windows.came_late(now, sent.plane, now - sent.sent_ns)

    def _longer(self, now: Instant, sent: Sent, took_ns: int) -> None:
        """Its path takes so long a time."""
        self._patience.late(took_ns - self._records.lag_of(sent.ev))
        self._records.late(now, sent.ev, took_ns)
        self._arrived.append(sent)

    def taken(self) -> Sequence[Sent]:
        """Those that have arrived since it was called before."""
        found = self._arrived
        if found:
            self._arrived = []
        return found

    def clear(self) -> None:
        """Nothing is in flight any more."""
        self._originals.clear()
        self._doubtful.clear()
        self._arrived.clear()
