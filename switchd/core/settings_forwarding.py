"""Knobs of a switch's forwarding: by uSIDs, or by a hash over paths of equal cost.

Owns names, units, defaults and bounds; `switchd.core.forwarding` gives them their meaning.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ForwardingKnobs:
    """How a packet finds its port."""

    forwarding: str = "usid"
    """`usid`: the container of the outer address names the way (MRC). `ecmp`: the address is a NIC's, and a hash picks
    one up-link for a flow. `lft`: a table from the LID to the port (InfiniBand)."""
    ecmp_seed: str = "per_switch"
    """`per_switch`: every switch hashes with a seed of its own. `common`: all hash alike, and in a fabric with two
    stages of hashing the second one uses a part of its links."""
    ecmp_hash: str = "mix"
    """`mix`: a 64-bit finaliser. `crc`: CRC-32, whose seed is only XORed in."""
    ecmp_resilient: bool = False
    """When a member of the group dies or returns, only its own flows move; otherwise most do (hash modulo the living
    members)."""
    ecmp_failover: bool = False
    """A T0 takes an up-link that lost its carrier out of its group. Off: static tables, and what was hashed there is
    lost. The carrier is lost when the cable is cut in the T0's own direction; a dead T1 behind a whole cable goes
    unnoticed. Nobody tells the switches on the other side, with or without."""
    ecmp_failover_ns: int = 1_000_000
    """How long after the loss of carrier the group changes, and after its return."""


LEAST: Final[dict[str, int]] = {"ecmp_failover_ns": 0}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {"ecmp_failover_ns": 10_000_000_000}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "forwarding": ("usid", "ecmp", "lft"),
    "ecmp_seed": ("per_switch", "common"),
    "ecmp_hash": ("mix", "crc"),
}
"""What a knob that is a name may be."""
