"""Knobs of the host's side of a NIC: how long work takes to reach it, and completions to be seen.

Owns names, units, defaults and bounds. Both are pipelined: what is posted or completed meanwhile waits as long, and no
longer. What a packet needs inside a NIC is the topology's (`mrcfabric.latency`), for it belongs to every round trip.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class HostKnobs:
    """The way between an application and its NIC."""

    host_post_ns: int = 0
    """From the post of a WRITE until the NIC can send its first packet: doorbell, fetch of the work request, read of
    the payload over PCIe."""
    host_complete_ns: int = 0
    """From the acknowledgement that ends a WRITE, or the last byte of a WRITE_WITH_IMM, until the application sees its
    completion."""


DERIVED: Final[dict[str, float]] = {}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {"host_post_ns": 0, "host_complete_ns": 0}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {"host_post_ns": 1_000_000, "host_complete_ns": 1_000_000}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {}
"""What a knob that is a name may be."""
