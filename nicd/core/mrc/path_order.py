"""Loss by the order on a path: a packet that was overtaken on its own path is lost, however short the wait.

Owns, per path of a QP, the transmissions in the order in which they left, the latest one known to have arrived, and how
many later ones prove a loss. `inflight` tells what leaves and arrives, and adds what is found here to its own judgement
by time. `patience` has that judgement, which serves where no later packet of the path arrives.

The uSIDs of an EV name every link of its path (MRC 1.0 6), and all data packets wait in one queue per link, so packets
of one path arrive in the order in which they left. Of packets trimmed to their headers, which pass others, a NACK
tells. Only first transmissions prove anything: of a packet sent twice nobody knows which transmission arrived.

A SACK proves that a packet had not arrived only if it shows its PSN, or tells that nothing had arrived but what is
freed; and that a later one had, only if this SACK has freed it: SACKs overtake each other.

A path that does reorder shows it: a packet that was judged lost here arrives. Then this path needs twice as many later
packets as had overtaken it, and half of that again after each `path_forget_ns` without such an arrival.

MRC 1.0 section 3: gaps go to loss detection; the threshold is not public.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from mrcfabric.units import Instant
from nicd.core.mrc.sent import INFLIGHT, Sent

NEVER_PROVED: Final = 1 << 60
"""So many later packets never come: the order on paths proves nothing."""


class PathOrder:
    """The transmissions of one QP by path. Bounded by what is in flight and what has finished behind it."""

    __slots__ = (
        "_arrived", "_arrived_ns", "_forget_ns", "_least", "_lines", "_needed", "_next", "_raised_ns", "_touched",
        "_way",
    )  # fmt: skip

    def __init__(self, least: int, way: Sequence[int], forget_ns: int) -> None:
        """`least`: so many later packets prove a loss (0: none do); `way`: EV -> number of its path's record."""
        self._least = least or NEVER_PROVED
        self._way = way
        self._forget_ns = forget_ns
        self._lines: list[deque[Sent]] = []
        """By path: transmissions in the order in which they left; finished ones are dropped from the left."""
        self._next: list[int] = []
        """By path: number of its next transmission."""
        self._arrived: list[int] = []
        self._arrived_ns: list[Instant] = []
        """By path: the last first transmission known to have arrived, and when it had left."""
        self._needed: list[int] = []
        self._raised_ns: list[Instant] = []
        """By path: how many later packets prove a loss, and when that was last raised or lowered."""
        self._touched: list[int] = []
        """Paths on which packets arrived while an earlier one is in flight, since `overtaken` was last asked."""

    def left(self, sent: Sent) -> None:
        """A packet leaves now."""
        way = self._way[sent.ev]
        while way >= len(self._lines):
            self._lines.append(deque())
            self._next.append(0)
            self._arrived.append(-1)
            self._arrived_ns.append(-1)
            self._needed.append(self._least)
            self._raised_ns.append(-1)
        sent.way = way
        place = self._next[way]
        sent.place = place
        self._next[way] = place + 1
        self._lines[way].append(sent)

    def arrived(self, sent: Sent) -> None:
        """A first transmission has arrived; it is DONE."""
        way, place = sent.way, sent.place
        if place > self._arrived[way]:
            self._arrived[way] = place
            self._arrived_ns[way] = sent.sent_ns
        line = self._lines[way]
        while line:
            first = line[0]
            if first.state == INFLIGHT:
                if first.place < place:
                    self._touched.append(way)
                return
            line.popleft()

    def overtaken(self, now: Instant, first: int, last: int) -> list[Sent]:
        """Packets in flight that were overtaken on their path, among the PSNs from `first` to below `last`.

        Of these PSNs the acknowledgement that was taken last has shown which had arrived.
        """
        found: list[Sent] = []
        for way in sorted(set(self._touched)):
            latest = self._arrived[way] - self._proof(now, way)
            for sent in self._lines[way]:
                if sent.place > latest:
                    break
                if sent.state == INFLIGHT and first <= sent.psn < last:
                    sent.passed_ns = now - self._arrived_ns[way]
                    found.append(sent)
        self._touched.clear()
        return found

    def in_flight(self, way: int) -> list[Sent]:
        """The transmissions in flight on a path, in the order in which they left."""
        return [sent for sent in self._lines[way] if sent.state == INFLIGHT]

    def tidy(self, most: int) -> None:
        """Drop what is finished behind what is in flight, if more than `most` transmissions are kept."""
        lines = self._lines
        if sum([len(line) for line in lines]) > most:
            for way, line in enumerate(lines):
                lines[way] = deque([sent for sent in line if sent.state == INFLIGHT])

    @property
    def is_touched(self) -> bool:
        """Whether `overtaken` may find something."""
        return bool(self._touched)

    def reordered(self, now: Instant, sent: Sent) -> None:
        """A packet that was judged lost because others had overtaken it has arrived after all."""
        way = sent.way
        self._needed[way] = max(self._proof(now, way), 2 * (self._arrived[way] - sent.place))
        self._raised_ns[way] = now

    def _proof(self, now: Instant, way: int) -> int:
        """How many later packets prove a loss on this path now."""
        needed = self._needed[way]
        if needed > self._least:
            spans = (now - self._raised_ns[way]) // self._forget_ns
            if spans:
                self._raised_ns[way] += spans * self._forget_ns
                self._needed[way] = needed = max(self._least, needed >> min(spans, 60))
        return needed

    def clear(self) -> None:
        """Nothing is in flight any more."""
        for line in self._lines:
            line.clear()
        self._touched.clear()
