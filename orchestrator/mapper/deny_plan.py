"""From a map of links to deny lists: which NIC should avoid which paths while which links are bad.

Pure. What an entry of a list means is the NIC's (`nicd.core.commands_paths`); who carries the commands there is
`orchestrator.mapper.mapping`'s.

- A bad T0-T1 link, gray or down: NICs below that T0 avoid the T1 in that plane towards everybody, all other NICs avoid
  it towards NICs below that T0. A dead T1: everybody avoids it.
- A gray NIC-T0 link: the NIC avoids the plane, and everybody avoids it towards that NIC. One that is down needs no
  entry: its NIC sees the carrier and tells its peers, and the plane is back as soon as the port is.

MRC cannot do the second by itself: endpoints do not see which end of a lossy path is at fault, and a plane all of
whose EVs lose packets is not left. A rule that would leave too little is not made, and the plan says so: no pair of
NICs keeps fewer planes than `planes_least`, and no pair of T0s fewer paths in a plane than `paths_least`, on account of
a rule. Worst links first.

arXiv 2605.04333 8 (deny lists fed by the Clustermapper).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.naming import t0_name, t1_name
from mrcfabric.topology import Topology
from nicd.core.deny_list import Entry, within
from orchestrator.mapper.link_verdicts import BAD, Cable, LinkMap, LinkVerdict, Verdict


@dataclass(frozen=True, slots=True)
class DenyFloor:
    """What a rule must leave."""

    planes_least: int
    """Planes between any two NICs."""
    paths_least: int
    """Paths in a plane between any two T0s."""

    @classmethod
    def of(cls, topology: Topology) -> "DenyFloor":
        """The default: half of each."""
        return cls(max(1, topology.planes // 2), max(1, topology.t1_per_plane // 2))

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        for name in ("planes_least", "paths_least"):
            if getattr(self, name) < 1:
                raise ConfigError(f"deny.{name}", f"{getattr(self, name)} is too small", "at least 1")


@dataclass(slots=True)
class DenyPlan:
    """What should be denied while a map holds."""

    entries: dict[int, set[Entry]] = field(default_factory=dict)
    """NIC number -> entries of its list."""
    rules: list[str] = field(default_factory=list)
    """Names of the links and switches that are avoided."""
    kept: dict[str, str] = field(default_factory=dict)
    """Names of bad links that are not avoided, and why."""

    def record(self) -> dict[str, Any]:
        """As plain data; of the lists only their lengths."""
        sizes = {str(nic): len(entries) for nic, entries in sorted(self.entries.items())}
        return {"avoided": self.rules, "kept": self.kept, "entries": sizes}


def plan_denials(topology: Topology, links: LinkMap, floor: DenyFloor) -> DenyPlan:
    """The deny lists for a map."""
    return _Planner(topology, links, floor).run()


def changes(wanted: set[Entry], present: Iterable[Entry], mine: set[Entry]) -> list[tuple[str, Entry]]:
    """(op, entry) in order, that turn a NIC's list `present` into `wanted` and what others have put there.

    `mine` are the entries put there by an earlier plan. Lifting one lifts all that lie within it: those that are to
    stay are put back.
    """
    there = set(present)
    final = (there - mine) | wanted
    orders: list[tuple[str, Entry]] = []
    for entry in sorted(there - final, key=_order):
        if entry in there:
            orders.append(("allow_paths", entry))
            there = {other for other in there if not within(other, entry)}
    return orders + [("deny_paths", entry) for entry in sorted(final - there, key=_order)]


def arguments(entry: Entry) -> dict[str, int]:
    """The arguments of a deny or allow command."""
    names = ("plane", "path", "peer_index")
    return {name: value for name, value in zip(names, entry, strict=True) if value is not None}


def _order(entry: Entry) -> tuple[int, ...]:
    # The widest first: an entry that is lifted takes those within it along.
    return tuple(-1 if value is None else value for value in entry)


class _Planner:
    def __init__(self, topology: Topology, links: LinkMap, floor: DenyFloor) -> None:
        self._topology = topology
        self._links = links
        self._floor = floor
        self._plan = DenyPlan()
        self._planes_out = [0] * topology.nics
        """Bit p of a NIC: plane p is of no use to it, cut or denied."""
        self._t1s_out: dict[tuple[int, int], set[int]] = {}
        """(plane, T0) -> T1s out of use or denied."""
        self._all_planes = (1 << topology.planes) - 1

    def run(self) -> DenyPlan:
        for link in self._links.of(Verdict.DOWN):
            if link.cable.nic is not None:
                self._planes_out[link.cable.nic] |= 1 << link.cable.plane
        self._dead_switches()
        worst_first = sorted(self._links.of(*BAD), key=lambda link: (-link.loss, link.cable.name))
        for link in worst_first:
            if link.cable.nic is None:
                self._avoid_path(link)
            elif link.verdict == Verdict.GRAY:
                self._avoid_plane(link, link.cable.nic)
        return self._plan

    def _dead_switches(self) -> None:
        topology = self._topology
        dead = set(self._links.dead)
        for plane in range(topology.planes):
            for t0 in range(topology.t0_per_plane):
                if t0_name(plane, t0) in dead:
                    for nic in self._below(t0):
                        self._planes_out[nic] |= 1 << plane
            for t1 in range(topology.t1_per_plane):
                name = t1_name(plane, t1)
                if name in dead and self._fits(name, plane, range(topology.t0_per_plane), t1):
                    for nic in range(topology.nics):
                        self._deny(nic, (plane, t1, None))

    def _avoid_path(self, link: LinkVerdict) -> None:
        plane, t0, _, t1 = link.cable
        assert t1 is not None
        if not self._fits(link.cable.name, plane, (t0,), t1):
            return
        below = self._below(t0)
        for nic in range(self._topology.nics):
            if nic in below:
                self._deny(nic, (plane, t1, None))
            else:
                for peer in below:
                    self._deny(nic, (plane, t1, peer))

    def _fits(self, name: str, plane: int, t0s: Iterable[int], t1: int) -> bool:
        """Take a T1 away from some T0s if enough paths are left between any two; note which way it went."""
        out = {t0: self._t1s_out.get((plane, t0), set()) for t0 in range(self._topology.t0_per_plane)}
        for t0 in t0s:
            out[t0] = out[t0] | {t1}
        fewest = min(self._topology.t1_per_plane - len(out[a] | out[b]) for a in t0s for b in out)
        if fewest < self._floor.paths_least:
            self._plan.kept[name] = f"would leave {fewest} paths in plane {plane}, fewer than {self._floor.paths_least}"
            return False
        for t0 in t0s:
            self._t1s_out[plane, t0] = out[t0]
        self._plan.rules.append(name)
        return True

    def _avoid_plane(self, link: LinkVerdict, nic: int) -> None:
        cable: Cable = link.cable
        out = self._planes_out[nic] | 1 << cable.plane
        fewest = min(
            (self._all_planes & ~(out | others)).bit_count()
            for peer, others in enumerate(self._planes_out)
            if peer != nic or self._topology.nics == 1
        )
        if fewest < self._floor.planes_least:
            why = f"would leave {fewest} planes, fewer than {self._floor.planes_least}"
            self._plan.kept[cable.name] = why
            return
        self._planes_out[nic] = out
        self._plan.rules.append(cable.name)
        for other in range(self._topology.nics):
            self._deny(other, (cable.plane, None, None if other == nic else nic))

    def _below(self, t0: int) -> range:
        first = t0 * self._topology.nics_per_t0
        return range(first, first + self._topology.nics_per_t0)

    def _deny(self, nic: int, entry: Entry) -> None:
        self._plan.entries.setdefault(nic, set()).add(entry)
