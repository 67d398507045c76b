"""The counters of a run: the latest answer of every incarnation of every node, and their sums.

A daemon counts from zero in every incarnation, so the last counts of a dead one are kept. `orchestrator.measures.sums`
fixes which sums a report shows; `orchestrator.apps.verdict` draws the verdict from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.measures import sums

# MRC 1.0 11.2: an EV in one of these states carries traffic, or will with the next turn of the scan.
GOOD_STATES = ("good", "skip")
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


@dataclass(slots=True)
class Books:
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

    def nic_sum(self, name: str) -> int:
        """A counter of the NICs, summed over its labels and all NICs."""
        return sum(total(core.get(name, 0)) for core in self._nics())

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

    def ev_states(self) -> dict[str, int]:
        """EVs of all QPs by state."""
        merged: dict[str, int] = {}
        for core in self._nics():
            for states in core["ev_states"].values():
                for state, count in states.items():
                    merged[state] = merged.get(state, 0) + count
        return merged

    def bad_evs(self) -> int:
        """EVs that are neither GOOD nor SKIP."""
        return sum(count for state, count in self.ev_states().items() if state not in GOOD_STATES)

    def ports_down(self) -> int:
        """NIC ports without carrier."""
        return sum(not port["carrier"] for core in self._nics() for port in core["ports"].values())

    def cost(self) -> dict[str, int]:
        """The counters that tell the cost of a fault, by their differences over its window."""
        transitions: dict[str, int] = {}
        for core in self._nics():
            for key, count in core["ev_transitions"].items():
                target = key.partition(":")[0]
                transitions[target] = transitions.get(target, 0) + count
        retransmitted = self.nic_sum("retransmits")
        return {
            # Every needless retransmission arrives as a duplicate.
            "packets_lost": retransmitted - self.nic_sum("duplicates"),
            "retransmitted": retransmitted,
            "evs_retired": transitions.get("assumed_bad", 0) + transitions.get("denied", 0),
            "evs_reinstated": sum(transitions.get(state, 0) for state in GOOD_STATES),
        }

    def _nics(self) -> list[dict[str, Any]]:
        newest = (node[max(node)]["core"] for node in self._answers.values())
        return [core for core in newest if "data_packets" in core]


def total(value: Any) -> int:
    """A counter, or the sum over all its labels."""
    return sum(map(total, value.values())) if isinstance(value, Mapping) else int(value)


def difference(later: Mapping[str, int], earlier: Mapping[str, int]) -> dict[str, int]:
    """The increase between two readings, name by name."""
    return {name: value - earlier.get(name, 0) for name, value in later.items()}
