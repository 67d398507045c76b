"""What a fault does: turns its kind and figures into states of ports and nodes, and these into commands.

Pure. Owns, for each kind, which spots of which nodes it changes (`effects`), which state several faults on one spot
have together (`composed`), and which command sets a state (`order`). `table` decides when a state is set, and in which
life of a node. `mrcfabric.impaired_link` says what an impairment does to a packet.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from mrcfabric.impairment import Impairment
from mrcfabric.rng import PPM
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from mrcfabric.wire.layout import PSN_MASK
from orchestrator.faults import headroom
from orchestrator.faults.checks import figures_of, ways
from orchestrator.faults.fault import Figure
from orchestrator.faults.kinds import OF_SESSIONS
from orchestrator.faults.selectors import nic_port


class Stamped(NamedTuple):
    """One command for one daemon at one fabric instant."""

    at_ns: Instant
    node: str
    op: str
    args: dict[str, Any]


class Aspect(IntEnum):
    """What faults can change in a node. At one instant commands follow this order."""

    IMPAIRMENT = 0
    """The sending direction of a port: an `Impairment`."""
    CARRIER = 1
    """A port: False while it has no carrier. No fault sets it itself: it follows from cables and neighbours."""
    FORWARDING = 2
    """A switch: False while it forwards nothing."""
    ECN = 3
    """A switch: the figures of `ecn_misconfigured`."""
    TRIM = 4
    """A switch: False while it does not trim."""
    CONTROL = 5
    """A daemon: False while it hears nothing. The daemon gets all windows at once; its core gets no commands."""
    PACE = 6
    """A daemon: which part of wall time it may use, per million. It gets all windows at once, too."""
    STORM = 7
    """A NIC's port: True while it asks for pauses without a reason."""
    RECEIVE_RATE = 8
    """A NIC: the figures of `slow_receiver`."""
    HEADROOM = 9
    """A switch's port: the bytes that a wrong headroom leaves it."""
    HASH = 10
    """A switch: True while it hashes with the common seed."""
    MANAGER = 11
    """A NIC: False while its subnet managers are dead."""
    MANAGER_PACE = 12
    """A NIC: how long its subnet managers take over each answer, in nanoseconds."""
    ROUTING = 13
    """A switch: what is wrong with its routing core, as arguments of `set_routing`; empty: nothing."""
    SESSION = 14
    """A switch's port: False while the routing session over it is shut down."""


class Spot(NamedTuple):
    """One thing that faults can change. Commands at one instant are in the order of their spots."""

    node: str
    aspect: Aspect
    port: int = -1
    """-1: the node as a whole."""


Effects: TypeAlias = dict[Spot, Any]
"""Spot -> the state that a fault gives it."""
_Figures: TypeAlias = Mapping[str, Any]

WHOLE: Final[Mapping[Aspect, Any]] = {
    Aspect.IMPAIRMENT: Impairment(),
    Aspect.CARRIER: True,
    Aspect.FORWARDING: True,
    Aspect.ECN: None,
    Aspect.TRIM: True,
    Aspect.CONTROL: True,
    Aspect.PACE: PPM,
    Aspect.STORM: False,
    Aspect.RECEIVE_RATE: None,
    Aspect.HEADROOM: None,
    Aspect.HASH: False,
    Aspect.MANAGER: True,
    Aspect.MANAGER_PACE: 0,
    Aspect.ROUTING: {},
    Aspect.SESSION: True,
}
"""The state of each aspect without faults. Every life of a node begins with it."""
TOLD_WHOLE: Final = frozenset({Aspect.CONTROL, Aspect.PACE})
"""Aspects whose windows a daemon gets all at once; its core knows nothing of them."""

_DARK: Final = Impairment(up=False)
PSN_BITS: Final = 24


def effects(topology: Topology, kind: str, struck: Sequence[str], given: Mapping[str, Figure]) -> Effects:
    """What a fault of this kind does, while in force, to what it strikes (`Fault.struck`).

    Takes the figures as given. Empty for kinds that kill nodes.
    """
    figures = figures_of(topology, kind, given)
    found: Effects = {}
    for target in struck:
        if kind in _ON_LINKS:
            impairment = _ON_LINKS[kind](figures)
            found.update({Spot(node, Aspect.IMPAIRMENT, port): impairment for node, port in ways(topology, target)})
        elif kind in OF_SESSIONS:
            found.update({Spot(node, Aspect.SESSION, port): False for node, port in ways(topology, target)})
        elif kind == "nic_port_down":
            found.update(_dark(topology, *nic_port(topology, target)))
        elif kind in _ON_NICS:
            aspect, state = _ON_NICS[kind](figures)
            nic, port = nic_port(topology, target) if ":" in target else (target, -1)
            found[Spot(nic, aspect, port)] = state
        elif kind == "plane_down":
            for nic in topology.nic_names():
                found.update(_dark(topology, nic, int(target)))
        elif kind == headroom.KIND:
            left = headroom.left_by_port(topology, target, figures)
            found.update({Spot(target, Aspect.HEADROOM, port): size for port, size in left.items()})
        elif kind == "control_cut":
            found[Spot(target, Aspect.CONTROL)] = False
        elif kind == "host_slow":
            found[Spot(target, Aspect.PACE)] = figures["cpu_ppm"]
        elif kind in _ON_SWITCHES:
            aspect, state = _ON_SWITCHES[kind](figures)
            found[Spot(target, aspect)] = state
    return found


def _dark(topology: Topology, nic: str, port: int) -> Effects:
    """The effects of a NIC's cable that is dark in both directions."""
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
    "link_retry": lambda figures: Impairment(retry_ppm=figures["share_ppm"], retry_ns=figures["retry_ns"]),
    "gray": lambda figures: Impairment(gray_ppm=figures["share_ppm"]),
    "corruption": lambda figures: Impairment(corruption_ppm=figures["share_ppm"]),
    "duplication": lambda figures: Impairment(duplication_ppm=figures["share_ppm"]),
    "reordering": lambda figures: Impairment(reordering_ppm=figures["share_ppm"], reordering_ns=figures["delay_ns"]),
    "delay": _delay,
    "rate_limit": lambda figures: Impairment(rate_bps=figures["rate_bps"]),
    "black_hole": _black_hole,
    "nth_packet": _nth_packet,
    "pfc_loss": lambda figures: Impairment(control_loss_ppm=figures["share_ppm"]),
    "host_cut_off": lambda figures: _DARK,
    "host_partition": lambda figures: _DARK,
}

_ON_NICS: Final[Mapping[str, Callable[[_Figures], tuple[Aspect, Any]]]] = {
    "pause_storm": lambda figures: (Aspect.STORM, True),
    "slow_receiver": lambda figures: (Aspect.RECEIVE_RATE, dict(figures)),
    "manager_down": lambda figures: (Aspect.MANAGER, False),
    "manager_slow": lambda figures: (Aspect.MANAGER_PACE, figures["delay_ns"]),
}
"""Of a NIC as a whole, or of the port that the target names."""

_ON_SWITCHES: Final[Mapping[str, Callable[[_Figures], tuple[Aspect, Any]]]] = {
    "switch_freeze": lambda figures: (Aspect.FORWARDING, False),
    "ecn_misconfigured": lambda figures: (Aspect.ECN, dict(figures)),
    "trimming_off": lambda figures: (Aspect.TRIM, False),
    "polarised_hash": lambda figures: (Aspect.HASH, True),
    "routing_hang": lambda figures: (Aspect.ROUTING, {"hung": True}),
    "slow_routing": lambda figures: (Aspect.ROUTING, {"slower": figures["factor"]}),
    "fib_stuck": lambda figures: (Aspect.ROUTING, {"stuck": True}),
    "stuck_route": lambda figures: (Aspect.ROUTING, {"zombies": [figures["nic"]]}),
    "route_leak": lambda figures: (Aspect.ROUTING, {"leaked": [figures["nic"]]}),
    "withdrawal_storm": lambda figures: (Aspect.ROUTING, {"withdrawn": True}),
    "graceful_shutdown": lambda figures: (Aspect.ROUTING, {"shutdown": True}),
}


def composed(aspect: Aspect, states: Sequence[Any]) -> Any:
    """The state that several faults together give one spot; `states` in the order in which they were injected.

    Impairments combine as `Impairment.merged` says. Of wrong marking thresholds the latest wins, but a fault that turns
    marks off wins over all. What is wrong with a routing core adds up, and the slowest pace wins, as do the slowest
    receiver, the slowest manager and the smallest headroom. A daemon's pace follows from all windows that it is told
    (`mrcfabric.brake`).
    """
    if not states:
        return WHOLE[aspect]
    if aspect is Aspect.IMPAIRMENT:
        return states[0] if len(states) == 1 else Impairment.merged(states)
    if aspect is Aspect.RECEIVE_RATE:
        return min(states, key=lambda state: state["rate_bps"])
    if aspect is Aspect.HEADROOM:
        return min(states)
    if aspect is Aspect.MANAGER_PACE:
        return max(states)
    if aspect is Aspect.ROUTING:
        return _all_of(states)
    if aspect is Aspect.ECN:
        return next((state for state in states if state["off"]), states[-1])
    return states[0]


def _all_of(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is wrong with a routing core that several faults act on: the slowest pace, every name, every flag."""
    found: dict[str, Any] = {}
    for state in states:
        for key, value in state.items():
            if isinstance(value, list):
                found[key] = sorted({*found.get(key, ()), *value})
            else:
                found[key] = max(value, found.get(key, value))
    return found


def order(spot: Spot, state: Any, at_ns: Instant) -> Stamped:
    """The command that sets a spot to this state at an instant."""
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
    Aspect.STORM: lambda port, state: ("set_pause_storm", {"port": port, "on": state}),
    Aspect.RECEIVE_RATE: lambda port, state: ("set_receive_rate", state or {"rate_bps": 0, "buffer_bytes": 0}),
    Aspect.HEADROOM: lambda port, state: ("set_headroom", {"port": port, "bytes_max": state}),
    Aspect.HASH: lambda port, state: ("set_hash", {"common": state}),
    Aspect.MANAGER: lambda port, state: ("set_manager", {"on": state}),
    Aspect.MANAGER_PACE: lambda port, state: ("set_manager_pace", {"delay_ns": state}),
    Aspect.ROUTING: lambda port, state: ("set_routing", state),
    Aspect.SESSION: lambda port, state: ("set_session", {"port": port, "down": not state}),
}
