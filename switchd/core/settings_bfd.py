"""Knobs of BFD beside BGP: how often two neighbours say that they hear each other.

Owns names, units, defaults and bounds; `switchd.core.routing.liveness` gives them their meaning. Names and defaults are
FRR's.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.units import NS_PER_MS, NS_PER_S


@dataclass(frozen=True)
class BfdKnobs:
    """With `routing: bgp`."""

    bfd: bool = False
    """Every session of BGP has one of BFD beside it, and ends with it."""
    bfd_transmit_interval_ns: int = 300 * NS_PER_MS
    """How often at most a packet is sent, once both sides hear each other; before that once a second."""
    bfd_receive_interval_ns: int = 300 * NS_PER_MS
    """How often at most one may come."""
    bfd_detect_multiplier: int = 3
    """After how many packets that did not come the neighbour gives the session up."""


LEAST: Final[dict[str, int]] = {
    "bfd_transmit_interval_ns": 10 * NS_PER_MS,
    "bfd_receive_interval_ns": 10 * NS_PER_MS,
}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {
    "bfd_transmit_interval_ns": 60 * NS_PER_S,
    "bfd_receive_interval_ns": 60 * NS_PER_S,
    "bfd_detect_multiplier": 255,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {}
"""What a knob that is a name may be."""
