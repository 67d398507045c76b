"""What a node has counted in all its lives since the launch: words of the clock page that outlive its process.

Owns their order, and what becomes of two rows of them. A daemon writes its row again and again, on top of what its
former lives had counted; the agent reads it, whether the node lives or not, and asks nobody. What a row lacks when a
process is killed is told by its first word: the fabric time up to which it counts (`mrcfabric.drive`). Sums over nodes
are `orchestrator.fabric.tallies`'.
"""

from collections.abc import Sequence
from operator import add
from typing import Final

GREATEST: Final = ("at_ns", "late_ns_max")
"""Words of which the greatest counts: the fabric time up to which the row counts, and the greatest lateness."""
FIDELITY: Final = ("frames_in", "late_frames", "late_commands", "host_drops", "bad_frames", "refused_frames")
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
    """The row of all lives: of those that are over, and of the present one."""
    summed = map(add, before[_TIMES:], life[_TIMES:])
    return [*map(max, before[:_TIMES], life[:_TIMES]), *(count & _WORD_MAX for count in summed)]


def later(row: Sequence[int], other: Sequence[int]) -> list[int]:
    """The later of two tellings of one row: nothing in it ever gets less."""
    return list(map(max, row, other))
