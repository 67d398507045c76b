"""What a fault does where: kinds and figures turned into the state of ports and nodes, and that into commands.

Pure. Owns, per kind, which spots of which nodes are affected (`effects`), how several faults on one spot come to one
state (`composed`), and the command that brings a state about (`order`). When, and in which life of a node, is
`table`'s; what an impairment does to a packet is `mrcfabric.impairment`'s.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from mrcfabric.impairment import Impairment
from mrcfabric.rng import PPM
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from mrcfabric.wire.layout import PSN_MASK
from orchestrator.faults.checks import figures_of, ways
from orchestrator.faults.fault import Figure
from orchestrator.faults.selectors import nic_port


class Stamped(NamedTuple):
    """One command for one daemon at one fabric instant."""

    at_ns: Instant
    node: str
    op: str
    args: dict[str, Any]


class Aspect(IntEnum):
    """What of a node a fault can change; in this order at one instant."""

    IMPAIRMENT = 0
    """Of a port's sending direction: an `Impairment`."""
    CARRIER = 1
    """Of a NIC's port: False while it has none. Never a fault's own effect: it follows from cables and neighbours."""
    FORWARDING = 2
    """Of a switch: False while it stands still."""
    ECN = 3
    """Of a switch: the figures of `ecn_misconfigured`."""
    TRIM = 4
    """Of a switch: False while it does not trim."""
    CONTROL = 5
    """Of a daemon: False while it hears nobody. It is told of the windows as a whole, not by commands to its core."""
    PACE = 6
    """Of a daemon: how much of wall time it may use, per million. Told as a whole, too."""


class Spot(NamedTuple):
    """Something that faults can change. The order of spots is the order of commands at one instant."""

    node: str
    aspect: Aspect
    port: int = -1
    """-1: the node as a whole."""


Effects: TypeAlias = dict[Spot, Any]
"""Spots and the state that a fault gives them."""
_Figures: TypeAlias = Mapping[str, Any]

WHOLE: Final[Mapping[Aspect, Any]] = {
    Aspect.IMPAIRMENT: Impairment(),
    Aspect.CARRIER: True,
    Aspect.FORWARDING: True,
    Aspect.ECN: None,
    Aspect.TRIM: True,
    Aspect.CONTROL: True,
    Aspect.PACE: PPM,
}
"""The state without faults, which every life of a node begins with."""
TOLD_WHOLE: Final = frozenset({Aspect.CONTROL, Aspect.PACE})
"""Aspects of daemons, which are told of all windows at once; cores know nothing of them."""

_DARK: Final = Impairment(up=False)
PSN_BITS: Final = 24


def effects(topology: Topology, kind: str, struck: Sequence[str], given: Mapping[str, Figure]) -> Effects:
    """What a fault of this kind does while it bites to what it acts upon (`Fault.struck`); nothing for those that let
    nodes die. Figures as given."""
    figures = figures_of(topology, kind, given)
    found: Effects = {}
    for target in struck:
        if kind in _ON_LINKS:
            impairment = _ON_LINKS[kind](figures)
            found.update({Spot(node, Aspect.IMPAIRMENT, port): impairment for node, port in ways(topology, target)})
        elif kind == "nic_port_down":
            found.update(_dark(topology, *nic_port(topology, target)))
        elif kind == "plane_down":
            for nic in topology.nic_names():
                found.update(_dark(topology, nic, int(target)))
        elif kind == "control_cut":
            found[Spot(target, Aspect.CONTROL)] = False
        elif kind == "host_slow":
            found[Spot(target, Aspect.PACE)] = figures["cpu_ppm"]
        elif kind in _ON_SWITCHES:
            aspect, state = _ON_SWITCHES[kind](figures)
            found[Spot(target, aspect)] = state
    return found


def _dark(topology: Topology, nic: str, port: int) -> Effects:
    """A NIC's cable without light."""
    end = topology.ports(nic)[port]
    return {Spot(nic, Aspect.IMPAIRMENT, port): _DARK, Spot(end.peer, Aspect.IMPAIRMENT, end.peer_port): _DARK}


def _black_hole(figures: _Figures) -> Impairment:
    usids = () if figures["usid"] is None else (figures["usid"],)
    evs = () if figures["ev"] is None else (figures["ev"],)
    return Impairment(black_hole_usids=usids, black_hole_evs=evs)


def _nth_packet(figures: _Figures) -> Impairment:
    first, qpn = figures["psn"], figures["qpn"] << PSN_BITS
    return Impairment(lost_packets=tuple(qpn | first + one & PSN_MASK for one in range(figures["psns"])))


def _delay(figures: _Figures) -> Impairment:
    return Impairment(delay_ppm=figures["share_ppm"], delay_ns=figures["delay_ns"], jitter_ns=figures["jitter_ns"])


_ON_LINKS: Final[Mapping[str, Callable[[_Figures], Impairment]]] = {
    "link_down": lambda figures: _DARK,
    "flap": lambda figures: _DARK,
    "optic": lambda figures: _DARK,
    "loss": lambda figures: Impairment(loss_ppm=figures["share_ppm"], loss_burst_packets=figures["burst_packets"]),
    "gray": lambda figures: Impairment(gray_ppm=figures["share_ppm"]),
    "corruption": lambda figures: Impairment(corruption_ppm=figures["share_ppm"]),
    "duplication": lambda figures: Impairment(duplication_ppm=figures["share_ppm"]),
    "reordering": lambda figures: Impairment(reordering_ppm=figures["share_ppm"], reordering_ns=figures["delay_ns"]),
    "delay": _delay,
    "rate_limit": lambda figures: Impairment(rate_bps=figures["rate_bps"]),
    "black_hole": _black_hole,
    "nth_packet": _nth_packet,
    "host_cut_off": lambda figures: _DARK,
    "host_partition": lambda figures: _DARK,
}

_ON_SWITCHES: Final[Mapping[str, Callable[[_Figures], tuple[Aspect, Any]]]] = {
    "switch_freeze": lambda figures: (Aspect.FORWARDING, False),
    "ecn_misconfigured": lambda figures: (Aspect.ECN, dict(figures)),
    "trimming_off": lambda figures: (Aspect.TRIM, False),
}


def composed(aspect: Aspect, states: Sequence[Any]) -> Any:
    """What several faults on one spot come to, in the order in which they were injected.

    Impairments as `Impairment.merged` says; of wrong thresholds the latest, and no marks if any says so. How slow a
    daemon is follows from all windows that it is told of (`mrcfabric.brake`).
    """
    if not states:
        return WHOLE[aspect]
    if aspect is Aspect.IMPAIRMENT:
        return states[0] if len(states) == 1 else Impairment.merged(states)
    if aspect is Aspect.ECN:
        return next((state for state in states if state["off"]), states[-1])
    return states[0]


def order(spot: Spot, state: Any, at_ns: Instant) -> Stamped:
    """The command that gives a spot this state at an instant."""
    op, args = _ORDERS[spot.aspect](spot.port, state)
    return Stamped(at_ns, spot.node, op, args)


def _ecn(_port: int, state: Any) -> tuple[str, dict[str, Any]]:
    if state is None:
        return "set_ecn", {"on": None}
    if state["off"]:
        return "set_ecn", {"on": False}
    return "set_ecn", {"on": None, "min_bytes": state["min_bytes"], "max_bytes": state["max_bytes"]}


_ORDERS: Final[Mapping[Aspect, Callable[[int, Any], tuple[str, dict[str, Any]]]]] = {
    Aspect.IMPAIRMENT: lambda port, state: ("set_impairment", {"port": port, "impairment": state.settings()}),
    Aspect.CARRIER: lambda port, state: ("set_carrier", {"port": port, "up": state}),
    Aspect.FORWARDING: lambda port, state: ("set_forwarding", {"on": state}),
    Aspect.ECN: _ecn,
    Aspect.TRIM: lambda port, state: ("set_trim", {"on": None if state else False}),
}
