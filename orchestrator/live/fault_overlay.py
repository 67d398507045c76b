"""What the faults in force do to the parts of a fabric as somebody sees it: which are concerned, and which links pass.

Pure. Owns the judgement of a link by its faults alone; that an end has died is for `live_view` to add. What a fault
does to a port is `orchestrator.faults.effects`'s.
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
    """What one fault does while it bites with certain figures."""

    nodes: tuple[str, ...]
    links: Mapping[str, LinkState]
    """Also links that are only concerned: those at a node that the fault is about."""


class FaultOverlay(NamedTuple):
    """What all faults do at one instant. What is not in a table is whole."""

    nodes: Mapping[str, tuple[str, ...]]
    """Ids of the faults in force by node."""
    links: Mapping[str, tuple[str, ...]]
    """The same by link, faults of its ends included."""
    states: Mapping[str, LinkState]
    """The links that are not up."""


class OverlayMaker:
    """Judges one fabric; keeps what it has worked out of faults that go on."""

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
        """`figures` None: it is in force and does not bite just now, as a flap while the link is up."""
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
        # With the figures that it has when it bites, it is known which links it is about.
        shown = fault.windows[0].figures if figures is None else figures
        for spot, state in effects(topology, fault.kind, fault.struck, shown).items():
            if spot.aspect is Aspect.IMPAIRMENT:
                link = topology.ports(spot.node)[spot.port].link
                now: LinkState = "up" if figures is None else _state(state)
                if _GRAVITY[now] >= _GRAVITY[links.get(link, "up")]:
                    links[link] = now
        return _Harm(nodes, links)


def _state(impairment: Impairment) -> LinkState:
    if not impairment.up or impairment.loss_ppm >= PPM:
        return "down"
    return "up" if impairment.healthy else "impaired"
