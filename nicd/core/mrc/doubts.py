"""Losses that a full queue explains: for which paths that explanation still holds.

Owns the count of packets lost in a row on each path while its plane was crowded. A packet dropped at a full receiver
says nothing about its path, and all paths of the plane share that receiver. So a path is compared with the others: it
is broken when it has lost more in a row than chance explains at the rate at which the others lose. `recovery` asks; the
congestion window says when a plane is crowded.

A deliberate addition: the public texts of MRC know losses without a trim as losses of a path only (MRC 1.0 3).
"""

from collections.abc import Sequence
from typing import Final

_ODDS: Final = 2
"""The losses in a row that are excused grow by so many times the ratio of losses to arrivals on other paths. With eight
excused where no other path loses, a path that loses like the others is judged broken once in 10 million rows."""


class _Row:
    """Losses in a row on one path."""

    __slots__ = ("arrived", "count", "lost")

    def __init__(self, arrived: int, lost: int) -> None:
        self.count = 0
        self.arrived = arrived
        self.lost = lost
        """`arrived` and `lost`: packets of the plane before the first of these losses."""


class Doubts:
    """The paths of one QP. `open` holds those with such losses; it is empty in a fabric that loses nothing."""

    __slots__ = ("_arrived", "_lost", "_most", "_path", "_plane", "open")

    def __init__(self, most: int, plane: Sequence[int], path: Sequence[int]) -> None:
        """`most`: losses in a row that are excused where no other path loses any.

        `plane` and `path`: of each EV of the profile.
        """
        self._most = most
        self._plane = plane
        self._path = path
        planes = max(plane, default=0) + 1
        self._arrived = [0] * planes
        self._lost = [0] * planes
        """`_arrived` and `_lost`: packets by plane, since the first doubt."""
        self.open: dict[tuple[int, int], _Row] = {}
        """(plane, path) -> losses since a packet last arrived by this path. Bounded by the number of paths."""

    def spare(self, ev: int) -> int:
        """Count a packet of this EV that was lost while its plane was crowded. Returns how many were lost in a row on
        its path; 0: too many for chance."""
        if not self._most:
            return 0
        plane = self._plane[ev]
        key = (plane, self._path[ev])
        row = self.open.get(key)
        if row is None:
            row = self.open[key] = _Row(self._arrived[plane], self._lost[plane])
        row.count += 1
        self._lost[plane] += 1
        arrived = self._arrived[plane] - row.arrived
        # Add one loss to those counted: a few arrivals alone do not prove that nothing is lost elsewhere.
        lost = self._lost[plane] - row.lost - row.count + 1
        # If a share p of packets is lost, n in a row are lost with a chance of p ** n < exp(-n (1 - p)). Where nothing
        # arrives by any path, this path is as good as the others.
        return row.count if row.count * arrived <= self._most * (arrived + _ODDS * lost) else 0

    def delivered(self, ev: int) -> None:
        """A packet of this EV has arrived, perhaps trimmed to its headers: close the doubt about its path."""
        plane = self._plane[ev]
        self._arrived[plane] += 1
        self.open.pop((plane, self._path[ev]), None)
