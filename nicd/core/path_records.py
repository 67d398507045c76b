"""What one QP has seen of each of its paths: when packets got through, and how many were lost since.

Owns one record per path (plane and number of the path in it), shared by the EVs that go over it. What follows for an
EV's state is `ev_profile`'s.
"""

from collections.abc import Iterable, Sequence

from mrcfabric.units import Instant


class PathRecords:
    """Records by path; `way` leads to them from the index of an EV."""

    __slots__ = ("_misses", "_misses_since_ns", "_numbers", "delivered_ns", "way")

    def __init__(self, plane: Sequence[int], path: Sequence[int]) -> None:
        """Plane and path of each EV of the profile."""
        self._numbers: dict[tuple[int, int], int] = {}
        self.delivered_ns: list[Instant] = []
        """When the latest packet left that is known to have arrived, by path."""
        self._misses: list[int] = []
        self._misses_since_ns: list[Instant] = []
        """Packets lost that left after that one, and which one that was."""
        self.way = [self._number(*key) for key in zip(plane, path, strict=True)]
        """Index of an EV -> number of its path's record."""

    def _number(self, plane: int, path: int) -> int:
        number = self._numbers.setdefault((plane, path), len(self._numbers))
        if number == len(self.delivered_ns):
            self.delivered_ns.append(-1)
            self._misses.append(0)
            self._misses_since_ns.append(-1)
        return number

    def move(self, index: int, plane: int, path: int) -> None:
        """An EV goes over another path from now on."""
        self.way[index] = self._number(plane, path)

    def proved(self, now: Instant, index: int) -> None:
        """Something that left just before `now` was answered on this EV."""
        self.delivered_ns[self.way[index]] = now

    def missed(self, index: int, sent_ns: Instant) -> int:
        """A packet that left on this EV at `sent_ns` is lost; how many are by now, since something came through."""
        way = self.way[index]
        if self._misses_since_ns[way] != self.delivered_ns[way]:
            self._misses_since_ns[way] = self.delivered_ns[way]
            self._misses[way] = 0
        if sent_ns > self.delivered_ns[way]:
            self._misses[way] += 1
        return self._misses[way]

    def latest(self, indices: Iterable[int]) -> Instant:
        """When the latest packet left that has arrived over one of these EVs' paths; -1: none has."""
        delivered, way = self.delivered_ns, self.way
        return max((delivered[way[index]] for index in indices), default=-1)
