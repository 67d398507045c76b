"""The vocabulary of the Clustermapper: links by their place, what is thought of each, and the map of all of them.

Owns names, plain-data forms and sums. How a verdict is reached is `orchestrator.mapper.clustermapper`'s, how it is
shown `orchestrator.cli.map_view`'s.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.units import Instant


class Verdict(StrEnum):
    """What is thought of a link or a switch."""

    GOOD = "good"
    SUSPECT = "suspect"
    GRAY = "gray"
    DOWN = "down"
    UNKNOWN = "unknown"


BAD = (Verdict.GRAY, Verdict.DOWN)


class Cable(NamedTuple):
    """One link by its place: below T0 number `t0` of `plane`, to a NIC (`nic`) or a T1 (`t1`)."""

    plane: int
    t0: int
    nic: int | None
    t1: int | None

    @property
    def name(self) -> str:
        """As the topology calls it."""
        t0 = t0_name(self.plane, self.t0)
        return f"{nic_name(self.nic)}~{t0}" if self.nic is not None else f"{t0}~{t1_name(self.plane, self.t1 or 0)}"

    @property
    def kind(self) -> str:
        return "nic-t0" if self.nic is not None else "t0-t1"


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """One link."""

    cable: Cable
    verdict: Verdict
    probes: int = 0
    """Over the window, on all ways that were counted for it."""
    lost: int = 0
    loss: float = 0.0
    """Bad: estimate per direction, if both are alike. Good: what the probes rule out, but for a chance of 1 %."""
    since_ns: Instant | None = None
    """When it was found bad."""
    note: str = ""
    direction: str = ""
    """Of a bad T0-T1 link, once it has been asked for: where packets are lost."""

    def noted(self, words: str) -> "LinkVerdict":
        """The same with one more remark."""
        return replace(self, note=f"{self.note}; {words}" if self.note else words)

    def withheld(self, words: str) -> "LinkVerdict":
        """The same as a suspicion only, and why."""
        return replace(self, verdict=Verdict.SUSPECT).noted(words)

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "link": self.cable.name, "plane": self.cable.plane, "kind": self.cable.kind, "verdict": str(self.verdict),
            "probes": self.probes, "lost": self.lost, "loss": round(self.loss, 6), "since_ns": self.since_ns,
            "note": self.note, "direction": self.direction,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class LinkMap:
    """All links of a fabric as they look at one instant."""

    at_ns: Instant
    links: tuple[LinkVerdict, ...]
    dead: tuple[str, ...]
    """Switches that are dead."""

    def of(self, *verdicts: Verdict) -> list[LinkVerdict]:
        """The links with one of these verdicts."""
        return [link for link in self.links if link.verdict in verdicts]

    @property
    def bad(self) -> list[str]:
        """Names of what is accused: dead switches, then links."""
        return [*self.dead, *(link.cable.name for link in self.of(*BAD))]

    @property
    def all_good(self) -> bool:
        """No link is anything but good."""
        return len(self.of(Verdict.GOOD)) == len(self.links)

    def sums(self) -> dict[tuple[int, str, str], int]:
        """(plane, kind, verdict) -> links; every combination is there."""
        kinds, planes = ("nic-t0", "t0-t1"), sorted({link.cable.plane for link in self.links})
        found = {(plane, kind, str(verdict)): 0 for plane in planes for kind in kinds for verdict in Verdict}
        for link in self.links:
            found[link.cable.plane, link.cable.kind, str(link.verdict)] += 1
        return found

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {"at_ns": self.at_ns, "dead": list(self.dead), "links": [link.record() for link in self.links]}
