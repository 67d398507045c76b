"""The terms of the Clustermapper: links by their place, the verdict on each, and the map of all of them.

Owns names, plain-data forms and sums. `orchestrator.mapper.clustermapper` reaches the verdicts;
`orchestrator.cli.map_view` shows them.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.units import Instant


class Verdict(StrEnum):
    """What the Clustermapper thinks of a link."""

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
        """The link's name in the topology."""
        t0 = t0_name(self.plane, self.t0)
        return f"{nic_name(self.nic)}~{t0}" if self.nic is not None else f"{t0}~{t1_name(self.plane, self.t1 or 0)}"

    @property
    def kind(self) -> str:
        return "nic-t0" if self.nic is not None else "t0-t1"


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """The verdict on one link."""

    cable: Cable
    verdict: Verdict
    probes: int = 0
    """Within the window, on all paths that were counted for this link."""
    lost: int = 0
    loss: float = 0.0
    """Bad: estimated loss per direction if both are alike. Good: the loss that the probes rule out with 99 % chance."""
    since_ns: Instant | None = None
    """When it was found bad."""
    note: str = ""
    direction: str = ""
    """For a bad T0-T1 link, once it has been asked for: the direction in which it loses packets."""

    def noted(self, words: str) -> "LinkVerdict":
        """The same verdict with one more note."""
        return replace(self, note=f"{self.note}; {words}" if self.note else words)

    def withheld(self, words: str) -> "LinkVerdict":
        """The same link as a suspect only, with the reason."""
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
    """All links of a fabric, as judged at one instant."""

    at_ns: Instant
    links: tuple[LinkVerdict, ...]
    dead: tuple[str, ...]
    """The names of dead switches."""

    def of(self, *verdicts: Verdict) -> list[LinkVerdict]:
        """The links with one of these verdicts."""
        return [link for link in self.links if link.verdict in verdicts]

    @property
    def bad(self) -> list[str]:
        """Names of everything accused: dead switches, then links."""
        return [*self.dead, *(link.cable.name for link in self.of(*BAD))]

    @property
    def all_good(self) -> bool:
        """Whether every link is good."""
        return len(self.of(Verdict.GOOD)) == len(self.links)

    def sums(self) -> dict[tuple[int, str, str], int]:
        """(plane, kind, verdict) -> number of links; has every combination."""
        kinds, planes = ("nic-t0", "t0-t1"), sorted({link.cable.plane for link in self.links})
        found = {(plane, kind, str(verdict)): 0 for plane in planes for kind in kinds for verdict in Verdict}
        for link in self.links:
            found[link.cable.plane, link.cable.kind, str(link.verdict)] += 1
        return found

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {"at_ns": self.at_ns, "dead": list(self.dead), "links": [link.record() for link in self.links]}
