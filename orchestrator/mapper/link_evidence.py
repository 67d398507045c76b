"""Keeps what self-probes have found, NIC by NIC, over a window of fabric time.

Owns the snapshots of the NICs' link tables and the differences between them: a NIC counts from its start, but a verdict
needs the last window only. `orchestrator.mapper.clustermapper` draws the conclusions about links.

A probe counts once it has come home or been given up. A probe that came home late was not lost.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from mrcfabric.units import Instant

Way: TypeAlias = tuple[int, int | None]
"""(plane, T1 at which the probes turn round; None: they turn at the T0)."""


class Counts(NamedTuple):
    """The probes on one path."""

    probes: int
    lost: int
    silent: int
    """How many were lost since the last one that came home."""


NONE = Counts(0, 0, 0)


class _Snapshot(NamedTuple):
    at_ns: Instant
    ways: dict[Way, tuple[int, int]]
    """Path -> probes judged and probes lost, since the NIC's start."""


class _Nic:
    """What is known of one NIC."""

    def __init__(self) -> None:
        self.start_ns: Instant = -1
        self.answers = False
        self.carrier = 0
        self.silent: dict[Way, int] = {}
        self.snapshots: deque[_Snapshot] = deque()
        self.floors: dict[Way, tuple[Instant, tuple[int, int]]] = {}
        """Path -> (instant, counts): what was counted up to that instant has been forgotten."""

    def read(self, at_ns: Instant, table: Mapping[str, Any]) -> None:
        """Read the NIC's table as it was at `at_ns`."""
        self.answers = True
        self.carrier = table["carrier"]
        if table["start_ns"] != self.start_ns:
            # The NIC has started again, or we see it for the first time: its former counts do not matter.
            first_time = self.start_ns < 0
            self.start_ns = table["start_ns"]
            self.snapshots.clear()
            self.floors.clear()
            if not first_time:
                self.snapshots.append(_Snapshot(self.start_ns, {}))
        ways: dict[Way, tuple[int, int]] = {}
        self.silent = {}
        place = table["columns"].index
        plane, t1, back, lost, late, silent = map(place, ("plane", "t1", "back", "lost", "late", "silent"))
        for row in table["rows"]:
            way = row[plane], row[t1]
            ways[way] = row[back] + row[lost], row[lost] - row[late]
            self.silent[way] = row[silent]
        self.snapshots.append(_Snapshot(at_ns, ways))

    def between(self, way: Way, since: _Snapshot) -> Counts:
        """What was found on a path since a snapshot, or since the path was forgotten."""
        if not self.snapshots:
            return NONE
        latest = self.snapshots[-1]
        probes, lost = latest.ways.get(way, (0, 0))
        at_ns, floor = self.floors.get(way, (-1, (0, 0)))
        before = floor if at_ns >= since.at_ns else since.ways.get(way, (0, 0))
        return Counts(probes - before[0], max(0, lost - before[1]), self.silent.get(way, 0))


class LinkEvidence:
    """The evidence of all NICs. Counting begins with a NIC's first table."""

    def __init__(self, nics: int, window_ns: int) -> None:
        self._nics = [_Nic() for _ in range(nics)]
        self._window_ns = window_ns

    def enter(self, nic: int, at_ns: Instant, table: Mapping[str, Any] | None) -> None:
        """Enter a NIC's link table as it was at `at_ns`; None: the NIC does not answer."""
        known = self._nics[nic]
        if table is None:
            known.answers = False
            return
        known.read(at_ns, table)
        while len(known.snapshots) > 2 and known.snapshots[1].at_ns <= at_ns - self._window_ns:
            known.snapshots.popleft()

    def answers(self, nic: int) -> bool:
        """Whether a NIC has answered with its latest table."""
        return self._nics[nic].answers

    def carrier(self, nic: int, plane: int) -> bool:
        """Whether a NIC that answers sees carrier on its port in a plane."""
        return bool(self._nics[nic].carrier >> plane & 1)

    def window(self, nic: int, way: Way) -> Counts:
        """What was found on a path of a NIC within the window, or since the path was forgotten."""
        known = self._nics[nic]
        return known.between(way, known.snapshots[0]) if known.answers else NONE

    def latest(self, nic: int, way: Way) -> Counts:
        """What was found on a path of a NIC between its last two tables."""
        known = self._nics[nic]
        if not known.answers or len(known.snapshots) < 2:
            return NONE
        return known.between(way, known.snapshots[-2])

    def forget(self, nic: int, way: Way) -> None:
        """Ignore from now on what a path has shown so far."""
        known = self._nics[nic]
        if known.snapshots:
            latest = known.snapshots[-1]
            known.floors[way] = latest.at_ns, latest.ways.get(way, (0, 0))
