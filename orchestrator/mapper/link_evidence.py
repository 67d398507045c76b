"""What self probes have found, NIC by NIC, over a window of fabric time.

Owns the snapshots of the NICs' link tables and the differences between them: a NIC counts from its start, a verdict
wants the last window. What the counts say about links is `orchestrator.mapper.clustermapper`'s.

A probe counts once it has come home or been given up; one that came home late was not lost.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from mrcfabric.units import Instant

Way: TypeAlias = tuple[int, int | None]
"""(plane, T1 it turns round at; None: at the T0)."""


class Counts(NamedTuple):
    """Probes on one way."""

    probes: int
    lost: int
    silent: int
    """Lost since the last that came home."""


NONE = Counts(0, 0, 0)


class _Snapshot(NamedTuple):
    at_ns: Instant
    ways: dict[Way, tuple[int, int]]
    """Probes judged and lost since the NIC's start."""


class _Nic:
    """What is known of one NIC."""

    def __init__(self) -> None:
        self.start_ns: Instant = -1
        self.answers = False
        self.carrier = 0
        self.silent: dict[Way, int] = {}
        self.snapshots: deque[_Snapshot] = deque()
        self.floors: dict[Way, tuple[Instant, tuple[int, int]]] = {}
        """What counted up to an instant no longer does."""

    def read(self, at_ns: Instant, table: Mapping[str, Any]) -> None:
        """Take in its table as it was at `at_ns`."""
        self.answers = True
        self.carrier = table["carrier"]
        if table["start_ns"] != self.start_ns:
            # It has started again, or is seen for the first time: what it found before counts for nothing.
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
        """What was found on a way since a snapshot, or since it was forgotten."""
        if not self.snapshots:
            return NONE
        latest = self.snapshots[-1]
        probes, lost = latest.ways.get(way, (0, 0))
        at_ns, floor = self.floors.get(way, (-1, (0, 0)))
        before = floor if at_ns >= since.at_ns else since.ways.get(way, (0, 0))
        return Counts(probes - before[0], max(0, lost - before[1]), self.silent.get(way, 0))


class LinkEvidence:
    """All NICs. The first table of a NIC is where its counting begins."""

    def __init__(self, nics: int, window_ns: int) -> None:
        self._nics = [_Nic() for _ in range(nics)]
        self._window_ns = window_ns

    def enter(self, nic: int, at_ns: Instant, table: Mapping[str, Any] | None) -> None:
        """A NIC's link table as it was at `at_ns`; None: it does not answer."""
        known = self._nics[nic]
        if table is None:
            known.answers = False
            return
        known.read(at_ns, table)
        while len(known.snapshots) > 2 and known.snapshots[1].at_ns <= at_ns - self._window_ns:
            known.snapshots.popleft()

    def answers(self, nic: int) -> bool:
        """Whether its latest table came."""
        return self._nics[nic].answers

    def carrier(self, nic: int, plane: int) -> bool:
        """Whether a NIC that answers sees carrier on a port."""
        return bool(self._nics[nic].carrier >> plane & 1)

    def window(self, nic: int, way: Way) -> Counts:
        """What was found on a way of a NIC over the window, or since it was forgotten."""
        known = self._nics[nic]
        return known.between(way, known.snapshots[0]) if known.answers else NONE

    def latest(self, nic: int, way: Way) -> Counts:
        """The same between its last two tables."""
        known = self._nics[nic]
        if not known.answers or len(known.snapshots) < 2:
            return NONE
        return known.between(way, known.snapshots[-2])

    def forget(self, nic: int, way: Way) -> None:
        """What a way has shown so far no longer counts."""
        known = self._nics[nic]
        if known.snapshots:
            latest = known.snapshots[-1]
            known.floors[way] = latest.at_ns, latest.ways.get(way, (0, 0))
