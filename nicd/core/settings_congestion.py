"""Knobs of a NIC's congestion control.

Sizes are payload bytes; 0 means "derive from the NIC's bandwidth-delay product".
Owns names, units, defaults and bounds; relations between knobs are `nicd.core.settings`'.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class CongestionKnobs:
    """How much may be in flight, and how much waits at a port."""

    timestamps: bool = True
    """Data packets carry a time stamp (TSETH) and round trips come from its echo; False: the packets have none, and
    the sender reckons with its own send times (MRC 1.0 allows both)."""
    service_time: bool = True
    """The echoed stamp is moved on by the time a packet has waited for its SACK (a negotiated option of MRC 1.0)."""
    cwnd_bytes: int = 0
    """Window per destination, payload bytes; 0: 1.5 times the NIC's bandwidth-delay product."""
    cwnd_trim_response: bool = True
    """A trim NACK takes its packet off the window, acknowledged windows bring it back; False: never moves."""
    port_queue_bytes_max: int = 0
    """A port takes a further packet while fewer data bytes wait; 0: one full packet (besides the one on the wire),
    so that the EV is chosen at the last moment."""


DERIVED: Final[dict[str, float]] = {}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {
    "cwnd_bytes": 0,
    "port_queue_bytes_max": 0,
}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {}
"""What a knob that is a name may be."""
