"""Which traffic each fault met: packets counted where it bites, as long as it bites.

Owns what counts for which kind. A fault that met nothing has shown nothing: reports say so, and what was expected of it
counts as not tried. Pure: who calls has asked the nodes.

    of a link        packets that left over it while it was impaired, lost or not; of a gray link, a black hole and the
                     n-th packets of a flow only those that it lost
    of a NIC's port  these, and what the NIC sent meanwhile by the ports that it was left with
    of a dead node   packets that its neighbours sent into it; if those are NICs, all that they sent meanwhile
    of a switch      packets that a frozen one lost, or one with too little headroom; that came to one that marks or
                     trims wrongly, if it does so; that a polarised one sent by its hash; that came to one whose
                     routing core is in trouble, or that has a session shut down

Counters of nodes are cumulative. Faults that bite in one place between the same two readings share what was counted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from mrcfabric.impairment import Impairment
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.faults.checks import DEADLY
from orchestrator.faults.effects import Aspect, effects
from orchestrator.faults.fault import Fault
from orchestrator.measures.recording import Injected
from orchestrator.planning.abilities import marks, routes, trims

Counts: TypeAlias = Mapping[str, int]
Place: TypeAlias = tuple[str, str]
"""A node and the name of one of its counters as `counting` has them, or `sent` for all that left its ports."""

_WITHOUT_TRAFFIC: Final = frozenset({"control_cut", "host_slow", "manager_down", "manager_slow"})
"""Kinds that concern no packet of the fabric."""
_TAKEN_AWAY: Final[Mapping[Aspect, Callable[[Topology], bool]]] = {
    Aspect.ECN: marks, Aspect.TRIM: trims, Aspect.ROUTING: routes, Aspect.SESSION: routes,
}  # fmt: skip
"""What a fault takes from a switch, and whether the switches of a fabric have it."""


class FaultTraffic:
    """The traffic that the faults of one run met, added up reading by reading."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._places: dict[tuple[str, Instant], frozenset[Place]] = {}
        """By id and start of the fault: others may be called the same later."""
        self._seen: dict[str, tuple[Instant, Counts]] = {}
        """When a node was read last, and what it said."""

    def begin(self, injected: Injected) -> None:
        """A fault is going to happen; from now on its traffic is counted."""
        if injected.fault.kind not in _WITHOUT_TRAFFIC:
            injected.met_packets = 0
            self._places[_key(injected.fault)] = frozenset(self._places_of(injected.fault))

    def witnesses(self, fault: Fault) -> list[str]:
        """The nodes that can tell what a fault meets."""
        return sorted({node for node, _ in self._places.get(_key(fault), ())})

    def enter(self, at_ns: Instant, counts: Mapping[str, Counts], faults: Iterable[Injected]) -> None:
        """What nodes had counted at an instant, over all their lives. Nodes that are left out are read later.

        The counts of a node are kept as they are until it is read again.
        """
        for injected in faults:
            places = self._places.get(_key(injected.fault))
            if places is None or injected.fault.start_ns > at_ns:
                continue
            assert injected.met_packets is not None
            for node, name in places:
                before = self._seen.get(node)
                if node in counts and before is not None and _bites(injected, before[0], at_ns):
                    met = _figure(counts[node], name) - _figure(before[1], name)
                    injected.met_packets += met
                    if met:
                        first_ns = before[0] if injected.met_ns is None else min(before[0], injected.met_ns[0])
                        injected.met_ns = first_ns, at_ns
            if injected.over_ns < min((self._seen.get(node, (0, {}))[0] for node, _ in places), default=0):
                del self._places[_key(injected.fault)]
        for node, told in counts.items():
            self._seen[node] = at_ns, told

    def _places_of(self, fault: Fault) -> set[Place]:
        topology = self._topology
        found: set[Place] = set()
        if fault.kind in DEADLY:
            for node in fault.struck:
                for end in topology.ports(node):
                    found.add((end.peer, f"sent.{end.peer_port}"))
                    if topology.parse_node(end.peer).tier == "nic":
                        found.add((end.peer, "sent"))
            return {place for place in found if place[0] not in fault.struck}
        for window in fault.windows:
            for spot, state in effects(topology, fault.kind, fault.struck, window.figures).items():
                if spot.aspect is Aspect.IMPAIRMENT:
                    found |= {(spot.node, f"{name}.{spot.port}") for name in _marks_left(fault.kind, state)}
                elif spot.aspect is Aspect.STORM:
                    found.add((spot.node, f"asked.{spot.port}"))
                elif spot.aspect is Aspect.RECEIVE_RATE:
                    found |= {(spot.node, f"asked.{port}") for port in range(topology.planes)}
                elif spot.aspect is Aspect.FORWARDING:
                    found.add((spot.node, "drops.frozen"))
                elif spot.aspect is Aspect.HEADROOM:
                    found.add((spot.node, "drops.pfc_headroom"))
                elif spot.aspect is Aspect.HASH:
                    found.add((spot.node, "hashed"))
                elif spot.aspect in _TAKEN_AWAY and _TAKEN_AWAY[spot.aspect](topology):
                    found.add((spot.node, "received"))
        return found | {(nic, "sent") for nic in _dark_nics(topology, fault)}


def _marks_left(kind: str, impairment: Impairment) -> list[str]:
    """The counters of a port that tell what an impairment met there, without the port's number."""
    # These lose some packets alone, and other faults may be in force on the same port.
    if kind in ("gray", "black_hole"):
        return [f"lost.{kind}"]
    return [f"named.{number}" for number in impairment.lost_packets] or ["met"]


def _key(fault: Fault) -> tuple[str, Instant]:
    return fault.id, fault.start_ns


def _dark_nics(topology: Topology, fault: Fault) -> Sequence[str]:
    """NICs of which a fault takes the carrier of a port."""
    if fault.kind == "nic_port_down":
        return [target.partition(":")[0] for target in fault.struck]
    if fault.kind == "plane_down":
        return list(topology.nic_names())
    if fault.kind in ("link_down", "flap", "optic"):
        ends = [node for target in fault.struck if ">" not in target for node in target.split("~")]
        return [node for node in ends if topology.parse_node(node).tier == "nic"]
    return []


def _bites(injected: Injected, after_ns: Instant, until_ns: Instant) -> bool:
    """Whether a fault bites at some instant in (after, until]."""
    for window in injected.fault.windows:
        if window.start_ns <= until_ns and min(window.end_ns, injected.over_ns) > after_ns:
            return True
    return False


def _figure(counts: Counts, name: str) -> int:
    if name == "sent":
        return sum(count for key, count in counts.items() if key.startswith("sent."))
    return counts.get(name, 0)
