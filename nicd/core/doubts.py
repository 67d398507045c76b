"""Losses that a full queue explains: for which paths that explanation still holds.

Owns the count of packets lost in a row on each path while its plane was crowded. What is dropped at a full receiver
says nothing about the path it took; but a path on which nothing arrives any more is broken, whatever the receiver
does. Who asks is `recovery`; when a plane is crowded is the congestion window's word.

A deliberate addition: the public texts of MRC know losses without a trim as losses of a path only (MRC 1.0 3).
"""

from collections.abc import Sequence


class Doubts:
    """Per path of one QP. `open` holds the paths with such losses, and is empty in a fabric that loses nothing."""

    __slots__ = ("_most", "_path", "_plane", "open")

    def __init__(self, most: int, plane: Sequence[int], path: Sequence[int]) -> None:
        """`most` losses in a row are explained; `plane` and `path` of each EV of the profile."""
        self._most = most
        self._plane = plane
        self._path = path
        self.open: dict[tuple[int, int], int] = {}
        """(plane, path) -> losses since a packet last arrived by it. Bounded by the paths."""

    def spare(self, ev: int) -> bool:
        """A packet of this EV was lost while its plane was crowded. False: too many in a row for chance."""
        key = (self._plane[ev], self._path[ev])
        count = self.open.get(key, 0) + 1
        self.open[key] = min(count, self._most + 1)
        return count <= self._most

    def delivered(self, ev: int) -> None:
        """A packet of this EV has arrived."""
        self.open.pop((self._plane[ev], self._path[ev]), None)
