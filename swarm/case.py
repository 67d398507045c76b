"""One case of the swarm as plain data: what stands there, who writes what to whom, what breaks.

Owns the records and their JSON form, so that a case can be stored, read and made smaller. Drawing one from a seed is
`swarm.draw`'s business, running one `swarm.run`'s.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from mrcfabric.topology import Topology
from mrcfabric.units import Instant

MRC: Final = "mrc"
SYSTEMS: Final = "systems"
SERIES: Final = (MRC, SYSTEMS)
"""The series that seeds belong to: fabrics of MRC, and fabrics of any system."""


@dataclass(slots=True)
class Write:
    """One WRITE, or with `imm` one WRITE_WITH_IMM."""

    at_ns: Instant
    length: int
    imm: int | None = None
    guard: int = 0
    """Bytes before its place in both regions that belong to nobody."""


@dataclass(slots=True)
class Flow:
    """A QP pair: its ends, its numbers, and what is written both ways."""

    a: str
    b: str
    qpn_a: int
    qpn_b: int
    psn_ab: int
    psn_ba: int
    setup_ns: Instant
    """When `a` makes its QP and its regions."""
    late_ns: int = 0
    """How much later `b` does."""
    terms: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What each side, "a" and "b", grants and asks for beyond the settings: see `swarm.terms`."""
    forth: list[Write] = field(default_factory=list)
    back: list[Write] = field(default_factory=list)


@dataclass(slots=True)
class Fault:
    """Something breaks at an instant, and is repaired at another (0: never)."""

    kind: str
    """A name of `swarm.breakage.KINDS`."""
    target: str
    at_ns: Instant
    until_ns: Instant = 0
    value: int = 0
    """What the kind says it is: a plane, a loss in ppm, the number of a flow."""


@dataclass(slots=True)
class Case:
    """Everything that makes a run; equal cases give equal traces."""

    name: str
    topology: Topology
    flows: list[Flow]
    faults: list[Fault] = field(default_factory=list)
    copies_ppm: int = 0
    """Frames per million that a link delivers twice."""
    delays_ppm: int = 0
    """Frames per million that a link delivers late, behind later ones."""
    harms_ppm: int = 0
    """Frames per million that a link delivers with a bit turned over."""
    profile: dict[str, Any] = field(default_factory=dict)
    """The EV profile that every NIC makes for its QPs, as arguments of a command; empty: the built-in one."""
    series: str = MRC
    """One of `SERIES`: which rules the case is put to."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` takes it back."""
        return {
            "name": self.name,
            "topology": self.topology.to_dict(),
            "flows": [asdict(flow) for flow in self.flows],
            "faults": [asdict(fault) for fault in self.faults],
            "copies_ppm": self.copies_ppm,
            "delays_ppm": self.delays_ppm,
            "harms_ppm": self.harms_ppm,
            "profile": self.profile,
            "series": self.series,
        }

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> "Case":
        """A case from plain data. Raises ConfigError for a topology that cannot be."""
        return cls(
            name=raw["name"],
            topology=Topology.from_dict(raw["topology"]),
            flows=[_flow(flow) for flow in raw["flows"]],
            faults=[Fault(**fault) for fault in raw["faults"]],
            copies_ppm=raw["copies_ppm"],
            delays_ppm=raw["delays_ppm"],
            harms_ppm=raw["harms_ppm"],
            profile=raw["profile"],
            series=raw.get("series", MRC),
        )

    @property
    def unruly(self) -> bool:
        """Links do what no fault of ours does."""
        return bool(self.copies_ppm or self.delays_ppm or self.harms_ppm)

    @property
    def bytes_posted(self) -> int:
        """Payload of all messages."""
        return sum(write.length for flow in self.flows for write in (*flow.forth, *flow.back))


def _flow(raw: dict[str, Any]) -> Flow:
    sides = {side: [Write(**write) for write in raw[side]] for side in ("forth", "back")}
    return Flow(**{**raw, **sides})
