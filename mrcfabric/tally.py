"""What a node has counted in all its lives since the launch: words of the clock page that outlive its process.

Owns the order of the words, and how two rows are combined. A daemon writes its row again and again, added to what its
former lives had counted. The agent reads it without asking anybody, whether the node lives or not. The first word is
the fabric time up to which the row counts (`mrcfabric.drive`); it shows what is missing when a process is killed.
`orchestrator.fabric.tallies` sums over nodes.
"""

from collections.abc import Sequence
from operator import add
from typing import Final

GREATEST: Final = ("at_ns", "late_ns_max")
"""Words combined by their maximum, not their sum: the fabric time up to which the row counts, the greatest lateness."""
FIDELITY: Final = (
    "frames_in", "late_frames", "late_commands", "host_drops", "bad_frames", "refused_frames", "unknown_flags",
)  # fmt: skip
"""Counts of `mrcfabric.link_port.Fidelity`."""
TOTALS: Final = (
    "data_packets",
    "payload_bytes",
    "bytes_placed",
    "ev_skips",
    "qp_errors",
    "packets_lost",
    "retransmits",
    "trims",
    "ecn_marks",
    "drops",
    "ev_transitions",
    "forwarded",
)
"""Counts of cores, as `orchestrator.measures.sums.totals` names them."""
NAMES: Final = (*GREATEST, *FIDELITY, *TOTALS)
WORDS: Final = len(NAMES)
_TIMES: Final = len(GREATEST)
_WORD_MAX: Final = (1 << 64) - 1


def together(before: Sequence[int], life: Sequence[int]) -> list[int]:
    """The row of all lives: the former ones, and the present one."""
    summed = map(add, before[_TIMES:], life[_TIMES:])
    return [*map(max, before[:_TIMES], life[:_TIMES]), *(count & _WORD_MAX for count in summed)]


def later(row: Sequence[int], other: Sequence[int]) -> list[int]:
    """The later of two copies of one row: no word of it ever decreases."""
    return list(map(max, row, other))
