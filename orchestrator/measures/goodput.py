"""Goodput over fabric time: bins of newly placed bytes, and the figures computed from them.

Owns the merging of the NICs' bins and the arithmetic of shares and recovery. Pure; the caller fetches the bins. A bin
that a NIC does not mention holds nothing. The rate of a window is taken over whole bins.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S, Instant
from nicd.compose import nic_settings

RECOVERED_BINS = 2
"""Goodput is back when it stays at its level for this many averaging windows in a row."""


@dataclass(slots=True)
class Goodput:
    """Bytes placed per bin: all NICs by plane, and each NIC over all planes."""

    bin_ns: int
    planes: int
    by_plane: dict[Instant, list[int]] = field(default_factory=dict)
    by_nic: dict[str, dict[Instant, int]] = field(default_factory=dict)
    _fetched: dict[str, dict[Instant, list[int]]] = field(default_factory=dict)
    """The newest bin per NIC, which may still grow: the next fetch replaces it."""

    @classmethod
    def of(cls, topology: Topology) -> "Goodput":
        """An empty record, in bins as wide as those of the fabric's NICs."""
        return cls(nic_settings(topology).bin_ns, topology.planes)

    def enter(self, nic: str, bins: Iterable[tuple[Instant, Sequence[int]]]) -> None:
        """Add bins of a NIC in time order; the newest one may come again with more bytes."""
        newest = self._fetched.setdefault(nic, {})
        mine = self.by_nic.setdefault(nic, {})
        for start, placed in bins:
            before = newest.get(start, [0] * self.planes)
            row = self.by_plane.setdefault(start, [0] * self.planes)
            for plane, size in enumerate(placed):
                row[plane] += size - before[plane]
            mine[start] = sum(placed)
            newest.clear()
            newest[start] = list(placed)

    def resume_ns(self, nic: str) -> Instant:
        """The instant from which to fetch a NIC's bins next: its newest bin comes again."""
        return max(self._fetched.get(nic, {0: []}), default=0)

    @property
    def last_ns(self) -> Instant:
        """Start of the newest bin of all NICs."""
        return max(self.by_plane, default=0)

    def rate_bps(self, start_ns: Instant, end_ns: Instant, nic: str | None = None) -> float:
        """Mean goodput of the whole bins within a window: of the fabric, or into one NIC. 0.0 for an empty window."""
        bins = self.whole_bins(start_ns, end_ns)
        if not bins:
            return 0.0
        if nic is None:
            total = sum(sum(self.by_plane.get(start, ())) for start in bins)
        else:
            mine = self.by_nic.get(nic, {})
            total = sum(mine.get(start, 0) for start in bins)
        return total * 8 * NS_PER_S / (len(bins) * self.bin_ns)

    def whole_bins(self, start_ns: Instant, end_ns: Instant) -> range:
        """Starts of the bins that lie within a window."""
        return range(-(-start_ns // self.bin_ns) * self.bin_ns, end_ns // self.bin_ns * self.bin_ns, self.bin_ns)

    def by_planes(self, bins: Iterable[Instant]) -> list[int]:
        """Bytes placed in these bins, plane by plane."""
        sums = [0] * self.planes
        for start in bins:
            for plane, size in enumerate(self.by_plane.get(start, ())):
                sums[plane] += size
        return sums

    def recovery_ns(
        self,
        fault_ns: Instant,
        until_ns: Instant,
        level_bps: float,
        window_ns: Instant,
        nic: str | None = None,
    ) -> Instant | None:
        """From the fault to the start of the first window that is good and followed by good ones.

        A window is good at `level_bps`. 0 when goodput never fell below; None when it was not back before `until_ns`.
        """
        bins = max(1, window_ns // self.bin_ns)
        start = fault_ns - fault_ns % self.bin_ns
        starts = range(start, until_ns - bins * self.bin_ns + 1, self.bin_ns)
        good = [bps >= level_bps for bps in self._windows(start, until_ns, bins, nic)]
        if all(good):
            return 0 if good else None
        need, row = RECOVERED_BINS * bins, 0
        for place in range(good.index(False), len(good)):
            row = row + 1 if good[place] else 0
            if row == need:
                return max(0, starts[place - need + 1] - fault_ns)
        return None

    def lowest_bps(self, start_ns: Instant, end_ns: Instant, window_ns: Instant, nic: str | None = None) -> float:
        """The lowest mean of any window between two instants; 0.0 where no window fits."""
        first = -(-start_ns // self.bin_ns) * self.bin_ns
        return min(self._windows(first, end_ns, max(1, window_ns // self.bin_ns), nic), default=0.0)

    def _windows(self, start_ns: Instant, end_ns: Instant, bins: int, nic: str | None) -> list[float]:
        """Means of the windows of so many bins that begin with each bin from `start_ns` on and end by `end_ns`."""
        # A window may hold thousands of bins: what was placed up to each of them is added up once.
        placed = [0, *accumulate(self._placed(at, nic) for at in range(start_ns, end_ns, self.bin_ns))]
        count = (end_ns - start_ns) // self.bin_ns - bins + 1
        scale = 8 * NS_PER_S / (bins * self.bin_ns)
        return [(placed[place + bins] - placed[place]) * scale for place in range(max(0, count))]

    def _placed(self, at_ns: Instant, nic: str | None) -> int:
        """Bytes of one bin: of the fabric, or into one NIC."""
        return sum(self.by_plane.get(at_ns, ())) if nic is None else self.by_nic.get(nic, {}).get(at_ns, 0)

    def timeline(self, start_ns: Instant, end_ns: Instant, bins_max: int) -> tuple[Instant, list[list[float]]]:
        """(bin width, Gb/s per plane and bin) for a chart of at most `bins_max` bins."""
        count = max(1, -(-(end_ns - start_ns) // self.bin_ns))
        merge = -(-count // bins_max)
        width = merge * self.bin_ns
        first = start_ns // self.bin_ns
        rows: list[list[float]] = []
        for group in range(-(-count // merge)):
            begin = (first + group * merge) * self.bin_ns
            placed = self.by_planes(range(begin, begin + width, self.bin_ns))
            rows.append([round(size * 8 / width, 2) for size in placed])
        return width, rows
