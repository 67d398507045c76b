"""What the leader knows of every pair of hosts: clocks, paths, waiting times, and frames that came late or never.

Owns the rows that status, metrics and reports show. The figures come from the hosts' relays
(`orchestrator.hosts.clock.peer_survey`); those of frames come from the daemons' own counts, port by port. A row is
about a host and one of its peers, as that host sees it. How the nodes of a host wait for each other is in the row
(host, same host).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from mrcfabric.units import NS_PER_S
from orchestrator.hosts.clock.path_probe import Path
from orchestrator.hosts.placement.layout import Layout

Row: TypeAlias = dict[str, Any]

SUMS: Final = ("waited_s", "ran_s", "late_frames", "host_drops")
"""Figures of a row that only grow: the difference of two readings is what came in between."""


@dataclass(slots=True)
class _Seen:
    """What one host has reported of another, or of itself."""

    latest: Mapping[str, Any] = field(default_factory=dict)
    waited_ns: int = 0
    """What relays before the present one reported; so is `ran_ns`."""
    ran_ns: int = 0

    def take(self, report: Mapping[str, Any]) -> None:
        if self.latest and report["life"] != self.latest["life"]:
            self.waited_ns += self.latest["waited_ns"]
            self.ran_ns += self.latest["ran_ns"]
        self.latest = report

    def total_s(self, name: str) -> float:
        total_ns: int = getattr(self, name) + self.latest.get(name, 0)
        return round(total_ns / NS_PER_S, 3)


class HostPairs:
    """All hosts of one fabric, by their numbers."""

    def __init__(self, hosts: Sequence[str]) -> None:
        """`hosts`: the names of the hosts."""
        self._hosts = hosts
        self._seen: dict[tuple[int, int], _Seen] = {}

    def take(self, host: int, report: Mapping[str, Any]) -> None:
        """Take a line from the relay of a host. Ignores lines that are not about a peer."""
        if "peer" in report:
            self._seen.setdefault((host, report["peer"]), _Seen()).take(report)

    def path(self, host: int, peer: int) -> Path | None:
        """The path from one host to another; None while it is being measured, and if no frames go there."""
        seen = self._seen.get((host, peer))
        found = None if seen is None else seen.latest["path"]
        return None if found is None else Path(**found)

    def rows(self, layout: Layout, counters: Mapping[str, Mapping[str, Any]]) -> list[Row]:
        """One row for every host and peer. Uses the part `fidelity` of the nodes' `counters`.

        A fabric on one host has no rows.
        """
        found = losses(layout, counters)
        return [self._row(pair, seen, found.get(pair, (0, 0))) for pair, seen in sorted(self._seen.items())]

    def _row(self, pair: tuple[int, int], seen: _Seen, losses: tuple[int, int]) -> Row:
        host, peer = pair
        clock, path = seen.latest["clock"] or {}, self.path(host, peer)

        def seconds(name: str) -> float | None:
            return clock[name] / NS_PER_S if name in clock else None

        def ppm(name: str) -> float | None:
            return None if clock.get(name) is None else round(clock[name], 3)

        return {
            "host": self._hosts[host],
            "peer": self._hosts[peer],
            "clock_offset_s": seconds("wall_offset_ns"),
            "clock_error_s": seconds("wall_error_ns"),
            "clock_drift_ppm": ppm("drift_ppm"),
            "clock_drift_error_ppm": ppm("drift_error_ppm"),
            "clock_jumps": clock.get("jumps", 0),
            "round_trip_s": seconds("round_trip_ns"),
            "path_mtu": None if path is None else path.mtu,
            "waited_s": seen.total_s("waited_ns"),
            "ran_s": seen.total_s("ran_ns"),
            "late_frames": losses[0],
            "host_drops": losses[1],
        }


def losses(layout: Layout, counters: Mapping[str, Mapping[str, Any]]) -> dict[tuple[int, int], tuple[int, int]]:
    """(host, peer) -> how many frames from that peer came late, and how many never, as the host's daemons count."""
    number = layout.sites.number
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for node, answer in counters.items():
        ends = {end.port: end.peer for end in layout.ports[node]}
        for port, (late, lost) in answer["fidelity"]["ports"].items():
            pair = number(node), number(ends[int(port)])
            before = found.get(pair, (0, 0))
            found[pair] = before[0] + late, before[1] + lost
    return found


def since(rows: Iterable[Row], earlier: Iterable[Row]) -> list[Row]:
    """Rows with the sums of an earlier reading subtracted."""
    before = {(row["host"], row["peer"]): row for row in earlier}
    found = []
    for row in rows:
        base = before.get((row["host"], row["peer"]), {})
        found.append({**row, **{name: round(max(row[name] - base.get(name, 0), 0), 3) for name in SUMS}})
    return found
