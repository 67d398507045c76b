"""Losses that a full queue explains: for which paths that explanation still holds.

Owns the count of packets lost in a row on each path while its plane was crowded. What is dropped at a full receiver
says nothing about the path it took, and the paths of the plane share it. So a path is compared with the others: it is
broken when it has lost so many in a row that chance, at the rate at which the others lose, does not explain it. Who
asks is `recovery`; when a plane is crowded is the congestion window's word.

A deliberate addition: the public texts of MRC know losses without a trim as losses of a path only (MRC 1.0 3).
"""

from collections.abc import Sequence
from typing import Final

_ODDS: Final = 2
"""Each loss elsewhere per arrival elsewhere allows for so many times as many in a row: with eight where nothing else is
lost, a path that loses as the others do is held to be broken once in 10 million rows, whatever they lose."""


class _Row:
    """Losses in a row on one path."""

    __slots__ = ("arrived", "count", "lost")

    def __init__(self, arrived: int, lost: int) -> None:
        self.count = 0
        self.arrived = arrived
        self.lost = lost
        """What had arrived and what was lost on the plane before the first of them."""


class Doubts:
    """Per path of one QP. `open` holds the paths with such losses, and is empty in a fabric that loses nothing."""

    __slots__ = ("_arrived", "_lost", "_most", "_path", "_plane", "open")

    def __init__(self, most: int, plane: Sequence[int], path: Sequence[int]) -> None:
        """`most` losses in a row are explained where no other path loses any; `plane` and `path` of each EV of the
        profile."""
        self._most = most
        self._plane = plane
        self._path = path
        planes = max(plane, default=0) + 1
        self._arrived = [0] * planes
        self._lost = [0] * planes
        """Packets by plane, since the first doubt."""
        self.open: dict[tuple[int, int], _Row] = {}
        """(plane, path) -> losses since a packet last arrived by it. Bounded by the paths."""

    def spare(self, ev: int) -> bool:
        """A packet of this EV was lost while its plane was crowded. False: too many in a row for chance."""
        if not self._most:
            return False
        plane = self._plane[ev]
        key = (plane, self._path[ev])
        row = self.open.get(key)
        if row is None:
            row = self.open[key] = _Row(self._arrived[plane], self._lost[plane])
        row.count += 1
        self._lost[plane] += 1
        arrived = self._arrived[plane] - row.arrived
        # One more than were counted: a few arrivals alone do not say that nothing is lost elsewhere.
        lost = self._lost[plane] - row.lost - row.count + 1
        # Of packets of which a share p is lost, n in a row are with a chance of p ** n < exp(-n (1 - p)). Where nothing
        # arrives by any path the path is as good as the others.
        return row.count * arrived <= self._most * (arrived + _ODDS * lost)

    def delivered(self, ev: int) -> None:
        """A packet of this EV has arrived, if only its header."""
        plane = self._plane[ev]
        self._arrived[plane] += 1
        self.open.pop((plane, self._path[ev]), None)
