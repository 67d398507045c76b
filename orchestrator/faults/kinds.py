"""The catalogue: the name of every kind of fault, what it acts on, its figures and its meaning.

Owns names, units, defaults and meanings, for the scenario language, the command line, the JSON Schema and the docs.
`mrcfabric.impaired_link` says what a kind does to a packet; `orchestrator.faults.effects` says which commands it takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.nearest import nearest_hint
from orchestrator.faults.fault import Figure


class Target(StrEnum):
    """What the targets of a fault name, and how they are spelled."""

    LINK = "link"
    """One or both directions of a link: `p0-t0-1~p0-t1-2` is both, `p0-t0-1>p0-t1-2` only that from the first node."""
    SWITCH = "switch"
    """`p0-t1-2`."""
    NIC = "nic"
    """`h003`."""
    NIC_PORT = "nic-port"
    """`h003:5`, the port of plane 5."""
    PLANE = "plane"
    """`5`."""
    NODE = "node"
    """A switch or a NIC."""
    HOST = "host"
    """`vm1`, a host of the fabric's inventory: the nodes placed there."""
    HOST_PAIR = "host-pair"
    """`vm1~vm2`, two hosts: the links between them."""


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A parameter of a kind of fault. Its unit is the ending of its name."""

    default: Figure
    """None: the figure may be left out, and `meaning` says what that does."""
    meaning: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the catalogue."""

    target: Target
    meaning: str
    figures: Mapping[str, FigureKind] = field(default_factory=dict)
    parts: Target | None = None
    """Which parts of the fabric a host fault is expanded into; None: the kind acts on its targets themselves."""
    flaps: bool = False
    """Whether a timetable gives it a period and a share of that."""


def _share(default: int, meaning: str) -> dict[str, FigureKind]:
    return {"share_ppm": FigureKind(default, meaning)}


_WHOLE = 1_000_000
_STATIC = " Without effect under switch.routing: static."
_EACH = "Packets that meet the fault, per million, drawn one by one (Toxiproxy's toxicity)."

KINDS: Mapping[str, Kind] = {
    "link_down": Kind(
        Target.LINK,
        "Every packet is lost in silence. A cable cut both ways takes the carrier of a NIC's port with it; "
        "one direction alone leaves it.",
    ),
    "flap": Kind(Target.LINK, "link_down again and again: its windows are the times without the link.", flaps=True),
    "optic": Kind(Target.LINK, "A transceiver that carries several links: all of them link_down at once."),
    "loss": Kind(
        Target.LINK,
        "Packets of both classes are lost at random, alone or in bursts.",
        {
            "share_ppm": FigureKind(10_000, "Packets lost per million, in the long run."),
            "burst_packets": FigureKind(1, "Mean length of a burst (Gilbert-Elliott); 1: each packet by itself."),
        },
    ),
    "link_retry": Kind(
        Target.LINK,
        "A packet that arrives damaged is sent again by the link itself: it is late, and all behind it wait.",
        {
            **_share(10_000, "Packets hit, per million; a retry may be hit, too."),
            "retry_ns": FigureKind(0, "How long a retry takes; 0: the link there and back, and the packet's time."),
        },
    ),
    "gray": Kind(Target.LINK, "Data packets are lost, control packets pass.", _share(_WHOLE, _EACH)),
    "corruption": Kind(
        Target.LINK, "A bit of the packet is turned over; the receiver's ICRC finds out.", _share(10_000, _EACH)
    ),
    "duplication": Kind(Target.LINK, "The packet arrives twice.", _share(10_000, _EACH)),
    "reordering": Kind(
        Target.LINK,
        "The packet is held back, so that later ones overtake it.",
        {**_share(10_000, _EACH), "delay_ns": FigureKind(2_000, "For how long.")},
    ),
    "delay": Kind(
        Target.LINK,
        "The link gets longer.",
        {
            **_share(_WHOLE, _EACH),
            "delay_ns": FigureKind(2_000, "By how much."),
            "jitter_ns": FigureKind(0, "And up to so much more, uniformly; packets do not overtake each other."),
        },
    ),
    "rate_limit": Kind(
        Target.LINK,
        "The link gets slower.",
        {"rate_bps": FigureKind(None, "To this rate, which must be below the link's own.", required=True)},
    ),
    "black_hole": Kind(
        Target.LINK,
        "Packets to one uSID, or of one entropy value, are lost; all others pass.",
        {
            "usid": FigureKind(None, "The uSID, anywhere in what is left of the address."),
            "ev": FigureKind(None, "The entropy value."),
        },
    ),
    "pfc_loss": Kind(
        Target.LINK,
        "Pause frames (PFC), or flow control packets of InfiniBand, are lost; packets pass.",
        _share(_WHOLE, "Frames lost, per million."),
    ),
    "nth_packet": Kind(
        Target.LINK,
        "Data packets of one flow, by their numbers from the first that it sends, are lost once; sent again they pass.",
        {
            "qpn": FigureKind(None, "The QP that they are for, at the receiver; of a flow of a scenario it is known."),
            "psn": FigureKind(None, "The PSN of the first of them; of a flow of a scenario it follows from `packet`."),
            "psns": FigureKind(1, "How many in a row."),
        },
    ),
    "switch_crash": Kind(Target.SWITCH, "SIGKILL to the daemon at the exact instant; healed, it starts anew."),
    "switch_reboot": Kind(Target.SWITCH, "switch_crash that ends by itself: each window is the time it is away."),
    "switch_freeze": Kind(
        Target.SWITCH, "Forwarding stops, every packet that arrives is lost, ports keep their carrier and state stays."
    ),
    "t0_down": Kind(Target.SWITCH, "A T0 crashes: all NICs below it lose a port."),
    "plane_down": Kind(Target.PLANE, "Every cable between NICs and the T0s of a plane is dark."),
    "nic_port_down": Kind(Target.NIC_PORT, "The NIC loses carrier on one port, and says so to its peers."),
    "pause_storm": Kind(
        Target.NIC_PORT,
        "A broken NIC asks its switch to pause its data class for as long as the fault lasts (PFC), or grants no more "
        "credit (InfiniBand). Without effect where switches are not lossless.",
    ),
    "slow_receiver": Kind(
        Target.NIC,
        "A NIC's host takes packets more slowly than they come, and the NIC pauses its switches (PFC) or keeps credit "
        "back (InfiniBand). Without effect where switches are not lossless.",
        {
            "rate_bps": FigureKind(None, "How fast it takes them, over all ports.", required=True),
            "buffer_bytes": FigureKind(262_144, "What its receive buffer holds before that."),
        },
    ),
    "nic_crash": Kind(Target.NIC, "SIGKILL to the NIC's daemon; healed, it starts anew and knows nothing."),
    "host_loss": Kind(Target.NIC, "The NIC's host is gone, with all that ran there; it does not come back by itself."),
    "ecn_misconfigured": Kind(
        Target.SWITCH,
        "Marking thresholds of every port are wrong.",
        {
            "off": FigureKind(False, "No marks at all."),
            "min_bytes": FigureKind(None, "Queue from which packets are marked; none: as configured."),
            "max_bytes": FigureKind(None, "Queue at which all are; none: as configured."),
        },
    ),
    "trimming_off": Kind(Target.SWITCH, "What finds a data queue full is dropped, not trimmed."),
    "wrong_headroom": Kind(
        Target.SWITCH,
        "Ports keep too little room for what comes after they have asked for a pause, and drop packets of a lossless "
        "class. Without effect where switches are not lossless.",
        {
            "headroom_bytes": FigureKind(None, "What is left of it; or of_exact_ppm."),
            "of_exact_ppm": FigureKind(None, "What is left, as a part of what the link needs, per million."),
            "towards": FigureKind("all", "Ports towards these alone: nic, t0 or t1."),
            "port": FigureKind(None, "This port alone, by its number."),
        },
    ),
    "polarised_hash": Kind(
        Target.SWITCH,
        "Switches hash flows with one seed, the same for all of them: flows move to other up-links as it begins and "
        "as it ends. Without effect where switches do not hash.",
    ),
    "manager_down": Kind(
        Target.NIC,
        "The subnet managers that the NIC is set to run (`nic.sm_nics`) die; healed, they begin anew and know nothing. "
        "Without effect where none runs.",
    ),
    "manager_slow": Kind(
        Target.NIC,
        "The NIC's subnet managers take long over each answer and trap. Without effect where none runs.",
        {"delay_ns": FigureKind(10_000_000, "How long, one after another.")},
    ),
    "routing_hang": Kind(
        Target.SWITCH,
        "The routing core hangs: it hears, says and decides nothing, while its switch forwards as before." + _STATIC,
    ),
    "slow_routing": Kind(
        Target.SWITCH,
        "The processor of the routing core takes longer over everything." + _STATIC,
        {"factor": FigureKind(100, "How many times longer.")},
    ),
    "fib_stuck": Kind(
        Target.SWITCH,
        "What the routing core writes changes nothing in the table by which packets are forwarded, and it believes "
        "that it does; a port whose neighbour is lost leaves the groups all the same." + _STATIC,
    ),
    "stuck_route": Kind(
        Target.SWITCH,
        "The switch keeps its routes to the prefix of a NIC, and goes on telling of them, whatever its neighbours take "
        "back or tell anew." + _STATIC,
        {"nic": FigureKind(None, "The NIC, by its name.", required=True)},
    ),
    "route_leak": Kind(
        Target.SWITCH,
        "The switch tells its neighbours that the prefix of a NIC is its own, as far as it knows that prefix."
        + _STATIC,
        {"nic": FigureKind(None, "The NIC, by its name.", required=True)},
    ),
    "withdrawal_storm": Kind(
        Target.SWITCH,
        "The switch takes back all that it has told its neighbours, and tells it anew, again and again: in its windows "
        "it has told nothing." + _STATIC,
        flaps=True,
    ),
    "session_down": Kind(
        Target.LINK,
        "The session between two switches is shut down at both ends; the link carries packets. A short one is a reset."
        + _STATIC,
    ),
    "session_flap": Kind(
        Target.LINK,
        "session_down again and again: its windows are the times without the session." + _STATIC,
        flaps=True,
    ),
    "graceful_shutdown": Kind(
        Target.SWITCH,
        "No fault, but what an operator does before maintenance: the switch asks its neighbours to prefer others "
        "(RFC 8326), and forwards what still comes." + _STATIC,
    ),
    "control_cut": Kind(
        Target.NODE, "The daemon hears nobody and answers nobody on its control channel; data flow as ever."
    ),
    "host_crash": Kind(
        Target.HOST,
        "Every node of the host dies at the exact instant; healed, its share is started anew and they with it.",
        parts=Target.NODE,
    ),
    "host_cut_off": Kind(
        Target.HOST,
        "Every link between a node of the host and one of another host is dark, both ways.",
        parts=Target.LINK,
    ),
    "host_partition": Kind(
        Target.HOST_PAIR,
        "Every link between a node of the one host and one of the other is dark, both ways.",
        parts=Target.LINK,
    ),
    "host_slow": Kind(
        Target.HOST,
        "The daemons of the host get a part of wall time only: fabric time is slower for it, and nothing else changes.",
        {"cpu_ppm": FigureKind(250_000, "The part that is left, per million.")},
        parts=Target.NODE,
    ),
}
OF_ROUTING: Final = frozenset(name for name, kind in KINDS.items() if kind.meaning.endswith(_STATIC))
"""Kinds that act on routing cores, of which there are none under `switch.routing: static`."""
OF_SESSIONS: Final = frozenset({"session_down", "session_flap"})
"""Kinds that act on links between switches alone."""
ABOUT_HOSTS: Final = frozenset(name for name, kind in KINDS.items() if kind.parts is not None)
"""Kinds of host faults: they need a fabric whose nodes are placed on hosts."""


def struck(kind: str) -> Target:
    """What a kind acts on: its targets, or the parts that these are expanded into."""
    row = KINDS[kind]
    return row.target if row.parts is None else row.parts


def nearest_kind(name: str) -> str:
    """The hint for somebody who named a kind that does not exist."""
    return nearest_hint(name, KINDS)


def no_hosts(what: str) -> ConfigError:
    """The error to raise for a host fault in a fabric without known hosts."""
    return ConfigError(what, "is about hosts, and this fabric has none by name", "needs --inventory FILE")
