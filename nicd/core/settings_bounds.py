"""Bounds of what a NIC keeps, and what happens at each.

Nothing in a NIC grows without one of these.
Owns names, units, defaults and bounds; relations between knobs are `nicd.core.settings`'.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class BoundKnobs:
    """How many of everything."""

    work_requests_max: int = 4096
    """Unfinished messages per QP; posting more is refused."""
    qps_max: int = 1024
    """QPs per NIC; creating more is refused."""
    regions_max: int = 4096
    """Memory regions per NIC; registering more is refused."""
    region_bytes_max: int = 1 << 34
    """Largest region."""
    region_own_bytes_max: int = 1 << 30
    """Bytes of all regions that come without memory of an application and that the NIC allocates itself; registering
    more is refused, so that no command can take a host's memory away."""
    bin_ns: int = 5_000
    """Width of a goodput bin."""
    bins_max: int = 65_536
    """Goodput bins kept; the oldest is forgotten."""
    events_max: int = 1 << 20
    """Events kept until they are drained; further ones are counted as `events_lost`."""


DERIVED: Final[dict[str, float]] = {}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {}
"""What a knob that is a name may be."""
