"""What the faults in force do to a fabric as people see it: which parts are concerned, and which links pass packets.

Pure. Owns the state of a link as its faults alone make it; `live_view` adds that an end has died.
`orchestrator.faults.effects` says what a fault does to a port.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from mrcfabric.impairment import Impairment
from mrcfabric.rng import PPM
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.faults.effects import Aspect, effects
from orchestrator.faults.fault import Fault, Figure
from orchestrator.faults.kinds import Target, struck
from orchestrator.live.snapshot import LinkState

_OF_NODES: Final = (Target.NODE, Target.SWITCH, Target.NIC)
_GRAVITY: Final = {"up": 0, "impaired": 1, "down": 2}


class _Harm(NamedTuple):
    """What one fault does with certain figures."""

    nodes: tuple[str, ...]
    links: Mapping[str, LinkState]
    """Also holds links that are only concerned: those of a node that the fault strikes."""


class FaultOverlay(NamedTuple):
    """What all faults do at one instant. Parts that are in no table are whole."""

    nodes: Mapping[str, tuple[str, ...]]
    """Node -> ids of the faults in force there."""
    links: Mapping[str, tuple[str, ...]]
    """Link -> ids of the faults in force on it or on one of its ends."""
    states: Mapping[str, LinkState]
    """Link -> its state, for links that are not up."""


class OverlayMaker:
    """Judges the links of one fabric, and keeps what it has worked out for faults that go on."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._known: dict[str, tuple[Fault, Mapping[str, Figure] | None, _Harm]] = {}

    def overlay(self, faults: Iterable[Fault], at_ns: Instant) -> FaultOverlay:
        """What these faults do at an instant."""
        nodes: dict[str, tuple[str, ...]] = {}
        links: dict[str, tuple[str, ...]] = {}
        states: dict[str, LinkState] = {}
        known = {}
        for fault in faults:
            if not fault.start_ns <= at_ns < fault.end_ns:
                continue
            harm = self._harm(fault, fault.at(at_ns))
            known[fault.id] = self._known[fault.id]
            for node in harm.nodes:
                nodes[node] = (*nodes.get(node, ()), fault.id)
            for link, state in harm.links.items():
                links[link] = (*links.get(link, ()), fault.id)
                if _GRAVITY[state] > _GRAVITY[states.get(link, "up")]:
                    states[link] = state
        self._known = known
        return FaultOverlay(nodes, links, states)

    def _harm(self, fault: Fault, figures: Mapping[str, Figure] | None) -> _Harm:
        """What a fault does. `figures` None: it is between two of its windows, as a flap while its link is up."""
        kept = self._known.get(fault.id)
        if kept is None or kept[0].struck != fault.struck or kept[0].kind != fault.kind or kept[1] != figures:
            kept = fault, figures, self._work_out(fault, figures)
            self._known[fault.id] = kept
        return kept[2]

    def _work_out(self, fault: Fault, figures: Mapping[str, Figure] | None) -> _Harm:
        topology, target = self._topology, struck(fault.kind)
        nodes: tuple[str, ...] = ()
        if target in _OF_NODES:
            nodes = fault.struck
        elif target == Target.NIC_PORT:
            nodes = tuple(dict.fromkeys(one.partition(":")[0] for one in fault.struck))
        links: dict[str, LinkState] = {}
        if target in _OF_NODES:
            links = {end.link: "up" for node in nodes for end in topology.ports(node)}
        # Between its windows, a fault's figures inside them tell which links it is about.
        shown = fault.windows[0].figures if figures is None else figures
        for spot, state in effects(topology, fault.kind, fault.struck, shown).items():
            if spot.aspect is Aspect.IMPAIRMENT:
                link = topology.ports(spot.node)[spot.port].link
                now: LinkState = "up" if figures is None else _state(state)
                if _GRAVITY[now] >= _GRAVITY[links.get(link, "up")]:
                    links[link] = now
            elif spot.aspect is Aspect.SESSION:
                links[topology.ports(spot.node)[spot.port].link] = "up"
        return _Harm(nodes, links)


def _state(impairment: Impairment) -> LinkState:
    if not impairment.up or impairment.loss_ppm >= PPM:
        return "down"
    return "up" if impairment.healthy else "impaired"
