"""Frames that came late or not at all, port by port and over all lives of a node: for the table of hosts.

A daemon counts from zero in each life. Owns what has been heard of the lives before: a frame that was lost stays lost,
though whoever counted it has died since, or does not answer just now. What the sums mean is
`orchestrator.measures.sums`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Record = Mapping[str, Any]
"""As `mrcfabric.drive.Drive.fidelity_record` says."""

_SUMMED: Final = ("frames_in", "late_frames", "late_commands", "host_drops", "bad_frames", "refused_frames")


@dataclass(slots=True)
class _Node:
    """What one has told."""

    incarnation: int
    latest: Record
    before: Record | None = None
    """All lives before the latest, as one."""


@dataclass(slots=True)
class PastLives:
    """Of all nodes of one fabric."""

    _nodes: dict[str, _Node] = field(default_factory=dict)

    def note(self, node: str, incarnation: int, record: Record) -> None:
        """What a node's daemon says in a life; what comes late of a former one is none of the latest's."""
        known = self._nodes.get(node)
        if known is None:
            self._nodes[node] = _Node(incarnation, record)
        elif incarnation == known.incarnation:
            known.latest = record
        elif incarnation > known.incarnation:
            self._nodes[node] = _Node(incarnation, record, _together(known.before, known.latest))

    def counters(self) -> dict[str, dict[str, Record]]:
        """Of every node that has ever told, in the shape of the daemons' answers: the part `fidelity` alone."""
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
