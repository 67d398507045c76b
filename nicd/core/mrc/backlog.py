"""Which ports of a NIC have more control packets waiting than leave soon.

Owns the bound. `reverse_set` sends fewer answers and no probes by such ports, and takes no silence there for
a lost way.

Every probe to a NIC has an answer, and in doubt several. Where many peers ask at once, the answers fill the NIC's own
control queue, the next ones come late, the peers take that for silence and ask more: nothing but questions and answers
travels any more. The NIC sees that by its queue.
"""

from typing import Final

from mrcfabric.plane_ports import PlanePorts
from mrcfabric.units import NEVER, Instant
from nicd.core.board import Board

_PARTS: Final = 4
"""What a port carries in a part of a base RTT so small may wait."""


class Backlog:
    """The ports of a NIC, by the planes to one peer that use them."""

    __slots__ = ("_bytes_max", "_planes_of", "_ports")

    def __init__(self, board: Board, ports: PlanePorts) -> None:
        self._ports = board.ports
        self._planes_of = ports.planes_of
        self._bytes_max = board.bdp_bytes // (_PARTS * board.ports.count)

    def planes(self) -> int:
        """Bit p: the port of plane p has such a queue."""
        most = self._bytes_max
        behind = 0
        for port, egress in enumerate(self._ports.egress):
            if egress.control_bytes > most:
                behind |= 1 << port
        return self._planes_of[behind] if behind else 0

    def wait(self, now: Instant, asked_ns: list[Instant]) -> int:
        """Count silence anew on these planes, because their probes have not left yet; returns the planes.

        `asked_ns`: when the probe of each plane was made; NEVER: none waits for an answer.
        """
        behind = self.planes()
        for plane in range(behind.bit_length()):
            if behind >> plane & 1 and asked_ns[plane] != NEVER:
                asked_ns[plane] = now
        return behind
