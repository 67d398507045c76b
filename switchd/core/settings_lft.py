"""Knobs of a switch that forwards by LID: adaptive routing, and the repair of its own links.

Owns names, units, defaults and bounds; `switchd.core.forwarding.lft` gives them their meaning.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.wire.routing_notice import HOLD_MAX_NS
from switchd.core.forwarding.lft import ADAPTIVE


@dataclass(frozen=True)
class LftKnobs:
    """How a packet finds its port, with `forwarding: lft`."""

    routing: str = "static"
    """`static`: tables are there from the start, those of the fabric without faults. `sm`: they begin empty, and a
    subnet manager writes them (InfiniBand). `bgp`: each switch runs a routing core that speaks BGP with its neighbours
    and fills its own table (`forwarding: ecmp`)."""
    adaptive: str = "off"
    """`off`: by the up-link that the table names for its LID. `packet`: by the up-link with the least to send.
    `flowlet`: the same, but a flow that has not paused for `flowlet_ns` stays where it is."""
    flowlet_ns: int = 10_000
    """For how long a flow must pause to take another up-link."""
    shield: bool = False
    """A T0 leaves an up-link out that has lost its carrier, whatever its table says (fast link fault recovery). Off:
    what the table sends there is lost until somebody writes another one."""
    shield_ns: int = 1_000_000
    """How long after the loss of carrier, and after its return. The same for `flfn`."""
    flfn: bool = False
    """A T1 whose link to a T0 has lost its carrier has no way left to the NICs there. It tells all other T0s so, which
    leave it out for their LIDs (fast link fault notification), until it says that it has one again. Off: what they
    send there is lost."""
    arn: bool = False
    """A T1 at which more than `arn_bytes` wait for a T0 tells those that send there; with `adaptive` they prefer other
    T1s for its LIDs (adaptive routing notification)."""
    arn_bytes: int = 16_384
    """And at least so much; four packets of 4,096 bytes."""
    arn_ns: int = 10_000
    """For how long a notice of congestion holds. While it lasts it is said again after half of that."""


LEAST: Final[dict[str, int]] = {"flowlet_ns": 0, "shield_ns": 0, "arn_bytes": 0, "arn_ns": 128}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {
    "flowlet_ns": 1_000_000_000,
    "shield_ns": 10_000_000_000,
    "arn_bytes": 1 << 30,
    "arn_ns": HOLD_MAX_NS,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {"routing": ("static", "sm", "bgp"), "adaptive": ADAPTIVE}
"""What a knob that is a name may be."""
