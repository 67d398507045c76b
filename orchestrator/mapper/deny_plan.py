"""Turns a map of links into deny lists: which NIC should avoid which paths while which links are bad.

Pure. The NIC (`nicd.core.commands_paths`) says what an entry of a list means. `orchestrator.mapper.mapping` sends the
commands.

- A bad T0-T1 link, gray or down: the NICs below that T0 avoid the T1 in that plane towards everybody, and all other
NICs avoid it towards the NICs below that T0. A dead T1: every NIC avoids it. - A gray NIC-T0 link: the NIC avoids the
plane, and every other NIC avoids the plane towards that NIC. A NIC-T0 link that is down needs no entry: its NIC sees
the carrier and tells its peers, and the plane is used again as soon as the port is back.

MRC cannot avoid a gray NIC-T0 link by itself: endpoints do not see which end of a lossy path is at fault, and a QP does
not leave a plane in which all its EVs lose packets. The planner skips a rule that would leave too little, and the plan
says so: because of rules, no pair of NICs keeps fewer planes than `planes_least`, and no pair of T0s fewer paths in a
plane than `paths_least`. The worst links get their rules first.

arXiv 2605.04333 8 (deny lists fed by the Clustermapper).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.naming import t0_name, t1_name
from mrcfabric.topology import Topology
from nicd.core.mrc.deny_list import Entry, within
from orchestrator.mapper.link_verdicts import BAD, Cable, LinkMap, LinkVerdict, Verdict


@dataclass(frozen=True, slots=True)
class DenyFloor:
    """What rules must leave over."""

    planes_least: int
    """How many planes any two NICs keep at least."""
    paths_least: int
    """How many paths in a plane any two T0s keep at least."""

    @classmethod
    def of(cls, topology: Topology) -> "DenyFloor":
        """The default floor: half of the planes, half of the paths."""
        return cls(max(1, topology.planes // 2), max(1, topology.t1_per_plane // 2))

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        for name in ("planes_least", "paths_least"):
            if getattr(self, name) < 1:
                raise ConfigError(f"deny.{name}", f"{getattr(self, name)} is too small", "at least 1")


@dataclass(slots=True)
class DenyPlan:
    """What to deny while a map holds."""

    entries: dict[int, set[Entry]] = field(default_factory=dict)
    """Number of a NIC -> the entries of its deny list."""
    rules: list[str] = field(default_factory=list)
    """Names of the links and switches that NICs avoid."""
    kept: dict[str, str] = field(default_factory=dict)
    """Names of bad links that NICs go on using, and why."""

    def record(self) -> dict[str, Any]:
        """As plain data, with the lengths of the lists only."""
        sizes = {str(nic): len(entries) for nic, entries in sorted(self.entries.items())}
        return {"avoided": self.rules, "kept": self.kept, "entries": sizes}


def plan_denials(topology: Topology, links: LinkMap, floor: DenyFloor) -> DenyPlan:
    """Make the deny lists for a map."""
    return _Planner(topology, links, floor).run()


def changes(wanted: set[Entry], present: Iterable[Entry], mine: set[Entry]) -> list[tuple[str, Entry]]:
    """The commands (op, entry), in order, that change a NIC's list from `present` to `wanted` plus others' entries.

    `mine` are the entries from an earlier plan. To lift an entry lifts all entries within it, too; those that are to
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
    """The arguments of a command that denies or allows an entry."""
    names = ("plane", "path", "peer_index")
    return {name: value for name, value in zip(names, entry, strict=True) if value is not None}


def _order(entry: Entry) -> tuple[int, ...]:
    # The widest first: to lift an entry lifts those within it, too.
    return tuple(-1 if value is None else value for value in entry)


class _Planner:
    def __init__(self, topology: Topology, links: LinkMap, floor: DenyFloor) -> None:
        self._topology = topology
        self._links = links
        self._floor = floor
        self._plan = DenyPlan()
        self._planes_out = [0] * topology.nics
        """NIC -> bits; bit p: plane p is cut or denied for it."""
        self._t1s_out: dict[tuple[int, int], set[int]] = {}
        """(plane, T0) -> T1s that are dead or denied for it."""
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
        """Deny a T1 to some T0s if every two T0s keep enough paths; note in the plan whether it was done."""
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
