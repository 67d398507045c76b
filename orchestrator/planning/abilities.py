"""What a fabric can do only with one transport, for commands and scripts that need it.

Owns the question and the refusal. MRC NICs have EVs and probe links; RC NICs keep each QP to one path and have
nothing of that. Packets of RC have uSIDs only where they are pinned to a path. UET NICs choose entropies, and switches
make paths of them.
"""

from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology

MRC: Final = "mrc"
UET: Final = "uet"
_PINNED: Final = "pinned"


def transport_of(topology: Topology) -> str:
    """The transport of all NICs, as in the setting `nic.transport`."""
    return str(topology.nic.get("transport", MRC))


def has_evs(topology: Topology) -> bool:
    """Whether QPs have EVs, with states, and choose a path for every packet."""
    return transport_of(topology) == MRC


def sprays_entropies(topology: Topology) -> bool:
    """Whether NICs choose an entropy for every packet, and switches its path by that (UET)."""
    return transport_of(topology) == UET


def has_usids(topology: Topology) -> bool:
    """Whether packets carry the uSIDs of their path."""
    return has_evs(topology) or topology.nic.get("rc_path") == _PINNED


def hashes(topology: Topology) -> bool:
    """Whether switches choose up-links by a hash of the flow."""
    return topology.switch.get("forwarding") == "ecmp"


def routes(topology: Topology) -> bool:
    """Whether switches route for themselves."""
    return topology.switch.get("routing") == "bgp"


def manages(topology: Topology) -> bool:
    """Whether subnet managers run on NICs."""
    return bool(topology.nic.get("sm_nics"))


def trims(topology: Topology) -> bool:
    """Whether any port of a switch cuts packets that find its queue full."""
    given = topology.switch
    return any(given.get(key, True) for key in ("trim", "trim_last_hop")) or _of_a_port(topology, "trim")


def marks(topology: Topology) -> bool:
    """Whether any port of a switch marks packets."""
    given = topology.switch
    return bool(given.get("ecn", True) or given.get("ecn_last_hop", False)) or _of_a_port(topology, "ecn")


def _of_a_port(topology: Topology, knob: str) -> bool:
    """Whether a port has a setting of its own that switches something on."""
    return any(value is True for key, value in topology.switch.items() if key.endswith(f".{knob}"))


def pauses(topology: Topology) -> bool:
    """Whether switches pause their neighbours instead of dropping."""
    return topology.switch.get("lossless") == "pfc"


def credited(topology: Topology) -> bool:
    """Whether nodes grant their neighbours credit for what they have room for."""
    return topology.switch.get("lossless") == "credits"


def lossless(topology: Topology) -> bool:
    """Whether a node that has no room makes its neighbours wait, by pauses or for want of credit."""
    return pauses(topology) or credited(topology)


def need_mrc(topology: Topology, where: str, what: str, hint: str) -> None:
    """Refuse what only MRC NICs can do: raises ConfigError with `what` and the transport that lacks it."""
    transport = transport_of(topology)
    if transport != MRC:
        raise ConfigError(where, f"{what}, and the NICs of this fabric run nic.transport {transport}", hint)
