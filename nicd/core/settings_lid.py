"""Knobs of a NIC on InfiniBand: its LIDs, the service level of its data, and whether it has a second path per QP.

Owns names, units, defaults and bounds. Which VL a service level travels on is the switches' matter, and a port's.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.wire.lrh import SLS
from mrcfabric.wire.options import LMC_MAX


@dataclass(frozen=True)
class LidKnobs:
    """How packets behind an LRH are addressed (`rc_path: lid`)."""

    lid_lmc: int = 0
    """A port has 2 to this power LIDs, and so many ways through the fabric; a QP takes one of them."""
    lid_sl: int = 0
    """Service level of data and acknowledgements."""
    apm: bool = False
    """Automatic path migration: each QP has a second path, by another LID or port, that it takes when its retries are
    used up or its port has lost its carrier. It does so once."""


DERIVED: Final[dict[str, float]] = {}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {"lid_lmc": 0, "lid_sl": 0}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {"lid_lmc": LMC_MAX, "lid_sl": SLS - 1}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {}
"""What a knob that is a name may be."""
