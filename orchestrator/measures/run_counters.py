"""The counters of a run: the latest answer of every incarnation of every node, and their sums.

A daemon counts from zero in every incarnation, so the last counts of a dead one are kept. `orchestrator.measures.sums`
fixes which sums a report shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.measures import sums

REPORTED = (
    "data_packets",
    "payload_bytes",
    "bytes_verified",
    "retransmits",
    "trims",
    "ecn_marks",
    "drops",
    "ev_skips",
    "ev_transitions",
    "qp_errors",
)
"""The totals of a report, in order."""
AFTER_DESTROY = ("unknown_peer", "unknown_qp", "uet_unknown_context")
"""Drops of a healthy fabric when workers leave: what is under way to a NIC whose QPs have just been destroyed."""


@dataclass(slots=True)
class RunCounters:
    """All counters of a run so far."""

    bytes_verified: int = 0
    """Bytes that applications compared with the expected ones."""
    _answers: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    """Node -> incarnation -> its latest answer to `counters`."""

    def enter(self, node: str, answer: dict[str, Any]) -> None:
        """Store a node's answer."""
        self._answers.setdefault(node, {})[answer["process"]["incarnation"]] = answer

    def totals(self) -> dict[str, int]:
        """The sums that a report shows."""
        nics: list[dict[str, Any]] = []
        switches: list[dict[str, Any]] = []
        for node in self._answers.values():
            for answer in node.values():
                (nics if "data_packets" in answer["core"] else switches).append(answer)
        found = sums.totals(nics, switches) | {"bytes_verified": self.bytes_verified}
        return {name: found[name] for name in REPORTED}

    def fidelity(self, time: Mapping[str, Any]) -> dict[str, Any]:
        """How faithful the run was, with the record of the fabric's timekeeper."""
        return sums.fidelity((answer for node in self._answers.values() for answer in node.values()), time)

    def drop_reasons(self) -> dict[str, int]:
        """Drops of NICs and switches by reason, ports included, over all lives."""
        found: dict[str, int] = {}
        for answer in (answer for node in self._answers.values() for answer in node.values()):
            core = answer["core"]
            # A switch includes its ports' drops in its own.
            ports = core["ports"].values() if "data_packets" in core else ()
            for reasons in (core["drops"], *(port["drops"] for port in ports)):
                for reason, count in reasons.items():
                    if count:
                        found[reason] = found.get(reason, 0) + count
        return dict(sorted(found.items()))


def difference(later: Mapping[str, int], earlier: Mapping[str, int]) -> dict[str, int]:
    """The increase between two readings, name by name."""
    return {name: value - earlier.get(name, 0) for name, value in later.items()}
