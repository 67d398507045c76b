"""What the routing core of one switch is given: who it is, its neighbours, its own prefixes, and its knobs.

`switchd.compose_routing` makes one from a topology.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mrcfabric.prefix import Prefix
from switchd.core.settings_bfd import BfdKnobs
from switchd.core.settings_bgp import BgpKnobs


@dataclass(frozen=True)
class RoutingKnobs(BfdKnobs, BgpKnobs):
    """Knobs of BGP and of BFD."""


@dataclass(frozen=True, slots=True)
class Neighbor:
    """The switch at the other end of a port."""

    port: int
    name: str
    asn: int
    address: bytes
    """Its link-local address."""
    own_address: bytes
    identifier: int
    """Its BGP identifier; it counts for what is known at a warm start alone."""
    dials: bool
    """Whether this end opens the connection. One end of each link does."""


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """One routing core."""

    name: str
    asn: int
    router_id: int
    """The BGP identifier, 32 bits, not zero, another one in each switch."""
    neighbors: tuple[Neighbor, ...]
    own: Mapping[Prefix, int] = field(default_factory=dict)
    """What the switch tells of as its own -> the port behind which it is, or -1 for what is always there."""
    warm: Mapping[int, Mapping[Prefix, tuple[int, ...]]] = field(default_factory=dict)
    """What the neighbour of each port has told, and by which path, at a warm start."""
    knobs: RoutingKnobs = field(default_factory=RoutingKnobs)
    mss: int = 1_220
    """Largest payload of a TCP segment, in bytes."""
    seed: str = ""
