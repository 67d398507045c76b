"""Knobs of switches that route for themselves by BGP: sessions, routes, damping, and what a processor takes for them.

Owns names, units, defaults and bounds; `switchd.core.routing` gives them their meaning. Names and defaults are those of
FRR with its profile for data centres, where FRR has the thing.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.errors import ConfigError, misfit, out_of_order
from mrcfabric.units import NS_PER_MS, NS_PER_S

WHOLE_SECONDS: Final = ("bgp_hold_ns",)
"""What OPEN says in seconds."""
HOLD_LEAST_NS: Final = 3 * NS_PER_S


@dataclass(frozen=True)
class BgpKnobs:
    """With `routing: bgp`."""

    bgp_keepalive_ns: int = 3 * NS_PER_S
    """How often a neighbour hears that a session lives; never longer than a third of the hold time. Traditionally
    60 s."""
    bgp_hold_ns: int = 9 * NS_PER_S
    """After how long without a message a session is given up, in whole seconds; the smaller one of both ends counts.
    Traditionally 180 s. 0: never."""
    bgp_connect_retry_ns: int = 10 * NS_PER_S
    """After how long a connection that nobody answers is tried again. Traditionally 120 s."""
    bgp_advertisement_interval_ns: int = 0
    """MRAI: the least time between two rounds of updates to one neighbour. Traditionally 30 s."""
    bgp_jitter: bool = True
    """Keepalive, connect retry and MRAI are each time 75 to 100 % of what is set."""
    bgp_maximum_paths: int = 64
    """Members of a group of equal paths."""
    bgp_multipath_relax: bool = True
    """Paths of equal length are equal, whatever AS numbers are in them."""
    bgp_fast_external_failover: bool = True
    """A session ends when its port has lost its carrier; otherwise when its hold time is over."""
    bgp_carrier_ns: int = NS_PER_MS
    """How long a port must have been without carrier, or with it again, until the switch believes it."""
    bgp_sender_loop_detection: bool = False
    """Do not tell a neighbour of paths that have its own AS number, which it would refuse."""
    bgp_suppress_fib_pending: bool = False
    """Tell neighbours of a route only when it stands in the table by which packets are forwarded."""
    bgp_prefixes: str = "rack"
    """What a T0 tells of: `rack`: the fewest prefixes that cover its NICs; `nic`: each NIC's address, which it takes
    back while that port has no carrier."""
    bgp_start: str = "warm"
    """`warm`: at the fabric's begin switches know the routes of the fabric without faults, and while sessions come up
    these count as they do after a graceful restart. `cold`: tables begin empty, as they always do in a switch that
    comes back."""
    bgp_stalepath_ns: int = 10 * NS_PER_S
    """After a warm start: for how long routes count whose neighbour has not told them anew."""
    bgp_batch_ns: int = NS_PER_MS
    """What the processor takes for the messages that wait, together."""
    bgp_prefix_ns: int = 10_000
    """What it takes besides for each prefix in them."""
    fib_write_ns: int = 50_000
    """What it takes to write one prefix into the table by which packets are forwarded."""
    fib_local_repair: bool = True
    """A port whose neighbour is lost leaves all groups at once; otherwise with the writing of each prefix."""
    bgp_dampening: bool = False
    """Leave routes out that flap."""
    bgp_dampening_half_life_ns: int = 900 * NS_PER_S
    """In which time a penalty halves."""
    bgp_dampening_reuse: int = 750
    """The penalty from which on a route is used again."""
    bgp_dampening_suppress: int = 2_000
    """The penalty from which on it is left out. RFC 7196 asks for 6,000."""
    bgp_dampening_max_suppress_ns: int = 3_600 * NS_PER_S
    """For how long at most."""


LEAST: Final[dict[str, int]] = {
    "bgp_keepalive_ns": NS_PER_S,
    "bgp_hold_ns": 0,
    "bgp_connect_retry_ns": NS_PER_S,
    "bgp_advertisement_interval_ns": 0,
    "bgp_carrier_ns": 0,
    "bgp_batch_ns": 0,
    "bgp_prefix_ns": 0,
    "fib_write_ns": 0,
    "bgp_dampening_half_life_ns": NS_PER_S,
    "bgp_dampening_max_suppress_ns": NS_PER_S,
}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {
    "bgp_keepalive_ns": 65_535 * NS_PER_S,
    "bgp_hold_ns": 65_535 * NS_PER_S,
    "bgp_connect_retry_ns": 65_535 * NS_PER_S,
    "bgp_advertisement_interval_ns": 600 * NS_PER_S,
    "bgp_maximum_paths": 512,
    "bgp_carrier_ns": 10 * NS_PER_S,
    "bgp_stalepath_ns": 3_600 * NS_PER_S,
    "bgp_batch_ns": 10 * NS_PER_S,
    "bgp_prefix_ns": NS_PER_S,
    "fib_write_ns": NS_PER_S,
    "bgp_dampening_half_life_ns": 45 * 60 * NS_PER_S,
    "bgp_dampening_reuse": 20_000,
    "bgp_dampening_suppress": 20_000,
    "bgp_dampening_max_suppress_ns": 255 * 60 * NS_PER_S,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {"bgp_prefixes": ("rack", "nic"), "bgp_start": ("warm", "cold")}
"""What a knob that is a name may be."""


def bgp_fault(knobs: BgpKnobs) -> ConfigError | None:
    """What is wrong with the first knob that does not go with the others; None: all do."""
    hold_ns = knobs.bgp_hold_ns
    # RFC 4271 4.2
    if hold_ns % NS_PER_S or 0 < hold_ns < HOLD_LEAST_NS:
        return misfit("switch.bgp_hold_ns", hold_ns, "0, or whole seconds from 3 on")
    reuse, suppress = knobs.bgp_dampening_reuse, knobs.bgp_dampening_suppress
    if suppress <= reuse:
        return out_of_order("switch.bgp_dampening_reuse", reuse, "switch.bgp_dampening_suppress", suppress)
    return None
