"""Counts frames that came late or not at all, by port and over all lives of a node, for the table of hosts.

A daemon counts from zero in each life. Owns what was reported in earlier lives, so that a lost frame still counts after
the daemon that counted it has died or stopped answering. `orchestrator.measures.sums` says what the sums mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Record = Mapping[str, Any]
"""What `mrcfabric.drive.Drive.fidelity_record` returns."""

_SUMMED: Final = (
    "frames_in", "late_frames", "late_commands", "host_drops", "bad_frames", "refused_frames", "unknown_flags",
)  # fmt: skip


@dataclass(slots=True)
class _Node:
    """What one node has reported."""

    incarnation: int
    latest: Record
    before: Record | None = None
    """All lives before the latest one, added up."""


@dataclass(slots=True)
class PastLives:
    """The reports of all nodes of one fabric."""

    _nodes: dict[str, _Node] = field(default_factory=dict)

    def note(self, node: str, incarnation: int, record: Record) -> None:
        """Keep a daemon's report of a life. A late report of an earlier life does not replace the latest one's."""
        known = self._nodes.get(node)
        if known is None:
            self._nodes[node] = _Node(incarnation, record)
        elif incarnation == known.incarnation:
            known.latest = record
        elif incarnation > known.incarnation:
            self._nodes[node] = _Node(incarnation, record, _together(known.before, known.latest))

    def counters(self) -> dict[str, dict[str, Record]]:
        """The sums of every node that has ever reported, in the form of the daemons' `counters`: `fidelity` only."""
        return {name: {"fidelity": _together(node.before, node.latest)} for name, node in self._nodes.items()}


def _together(before: Record | None, latest: Record) -> Record:
    if before is None:
        return latest
    ports = {number: list(counts) for number, counts in before["ports"].items()}
    for number, counts in latest["ports"].items():
        ports[number] = [sum(both) for both in zip(ports.get(number, (0, 0)), counts, strict=True)]
    return {
        **{name: before[name] + latest[name] for name in _SUMMED},
        "late_ns_max": max(before["late_ns_max"], latest["late_ns_max"]),
        "ports": ports,
    }
