"""Knobs of the model of a NIC's on-chip memory: how many QP contexts it holds, and what a missing one costs.

No public text of MRC gives sizes of real NICs, so the model is off unless `sram_bytes` says otherwise.
Owns names, units, defaults and bounds; the sizes behind them are `nicd.core.mrc.footprint`'s.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class OnChipKnobs:
    """Memory for QP contexts, and the way to the host's."""

    sram_bytes: int = 0
    """On-chip memory for QP contexts; contexts beyond it are spilled to the host, the one longest unused first.
    0: unlimited, and the model costs nothing. At least one context is always on chip: the one being worked on."""
    sram_qp_bytes: int = 0
    """What one QP takes of it; 0: every table of a QP at its limit, as `nicd.core.mrc.footprint` adds them up."""
    sram_miss_ns: int = 1_000
    """Fetching a spilled context, the write-back of the one it replaces included: about two reads over PCIe."""
    sram_fetches: int = 4
    """Fetches under way at a time; further ones wait their turn."""
    sram_waiting_max: int = 1_024
    """Received packets that wait for their QP's context; one more is dropped as `context_queue`."""
    ev_bits: int = 32
    """Bits per EV in the table of a QP that draws its own: 32 is what travels; 11 would do for 8 planes of 256 up-links
    (arXiv 2605.04333). A QP whose profile has EVs of its own keeps their numbers only."""


DERIVED: Final[dict[str, float]] = {}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {
    "sram_bytes": 0,
    "sram_qp_bytes": 0,
}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {
    "sram_fetches": 1_024,
    "ev_bits": 256,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {}
"""What a knob that is a name may be."""
