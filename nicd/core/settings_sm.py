"""Knobs of the subnet managers of an InfiniBand fabric: who runs one, and how it works.

Owns names, units, defaults and bounds; `nicd.core.subnet` gives them their meaning. The figures are those of opensm.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class SmKnobs:
    """Subnet managers, which write the switches' tables with `switch.routing: sm`."""

    sm_nics: int = 0
    """So many NICs, the first ones, run a subnet manager for each of their ports from their start on. The first is
    the master, the others stand by."""
    sm_sweep_ns: int = 10_000_000_000
    """From the end of a sweep to the next light one, which asks every switch whether a port has changed."""
    sm_timeout_ns: int = 200_000_000
    """A request without an answer is asked again after so long."""
    sm_retries: int = 3
    """So many more times; then it is given up."""
    sm_outstanding: int = 4
    """No more requests than these are out."""
    sm_poll_ns: int = 10_000_000_000
    """A manager that stands by asks the master so often whether it lives."""
    sm_polls: int = 4
    """And takes over when so many in a row had no answer."""


DERIVED: Final[dict[str, float]] = {}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {"sm_nics": 0, "sm_retries": 0}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {"sm_outstanding": 1 << 16, "sm_retries": 100, "sm_polls": 100}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {}
"""What a knob that is a name may be."""
