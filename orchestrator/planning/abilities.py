"""What a fabric can do only with one transport, for commands and scripts that need it.

Owns the question and the refusal. MRC NICs have EVs, probe links, and send packets that witnesses can tell apart; RC
NICs keep each QP to one path and have nothing of that.
"""

from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology

MRC: Final = "mrc"


def transport_of(topology: Topology) -> str:
    """The transport of all NICs, as in the setting `nic.transport`."""
    return str(topology.nic.get("transport", MRC))


def has_evs(topology: Topology) -> bool:
    """Whether QPs have EVs, with states, and choose a path for every packet."""
    return transport_of(topology) == MRC


def need_mrc(topology: Topology, where: str, what: str, hint: str) -> None:
    """Refuse what only MRC NICs can do: raises ConfigError with `what` and the transport that lacks it."""
    transport = transport_of(topology)
    if transport != MRC:
        raise ConfigError(where, f"{what}, and the NICs of this fabric run nic.transport {transport}", hint)
