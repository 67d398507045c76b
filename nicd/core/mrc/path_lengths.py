"""How much longer single paths to a peer are than the base RTT, as probes tell it that pass the queues of data.

Owns when a path is probed, and what its answers mean. `path_shares` says by how much a path seems longer, and takes it
for no longer than it is told here.

Round trips of data cannot tell a longer path from one whose link is slow: a link with a tenth of its rate holds packets
for longer than a round trip before its queue is long enough for a mark. A probe in the control class waits for no data
but the packets that are on the wires. So data only raise a suspicion, and probes decide.

The peer answers by the same way turned round and by one that was proved lately; the first answer counts. The least of
all answers is the length, because each may have met packets on the wires, or have come back by a long path. A path that
has become longer shows in two answers in a row that are longer by a margin.

A deliberate addition, as `nicd.core.congestion.probed_lengths` is: the probes are the endpoint EV probes of MRC 1.0
2.6, which may travel in any class.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.layout import OP_EV_PROBE, timestamp_of
from mrcfabric.wire.templates import ControlTemplate
from nicd.core.congestion.plane_lengths import wires_ns
from nicd.core.mrc.board import MrcBoard
from nicd.core.settings import DestinationLike

PATHS: Final = 8
"""So many paths are probed at a time at most."""
SURE: Final = 2
"""A path is probed until so many answers have come, however well data agree with the first."""
SPAN_RTTS: Final = 8
"""The same path is probed again after so many base RTTs."""
REST_SPANS: Final = 16
"""While data and answers contradict each other it is probed after twice the time, at most after so many spans."""
REMEMBERED: Final = 1024
WAITING: Final = 64
"""So many paths of a peer, and probes under way to it; of more the oldest are forgotten."""


class PathLength:
    """What is known of one path."""

    __slots__ = ("answers", "due_ns", "least_ns", "longer_ns", "rest_ns")

    def __init__(self, rest_ns: int) -> None:
        self.least_ns = NEVER
        """By how much a packet took longer than a base RTT, at least; NEVER: no answer yet."""
        self.longer_ns = NEVER
        """The last answer, if it was longer than that by a margin; else NEVER."""
        self.answers = 0
        self.due_ns: Instant = 0
        """When it may be probed again."""
        self.rest_ns = rest_ns


class PathLengths:
    """The paths to one peer."""

    __slots__ = (
        "_base_ns", "_batch_left", "_batch_ns", "_board", "_control", "_margin_ns", "_next_id", "_packet_ns", "_paths",
        "_to", "_waiting",
    )  # fmt: skip

    def __init__(
        self, board: MrcBoard, destination: DestinationLike, control: ControlTemplate, next_id: Callable[[], int]
    ) -> None:
        """`next_id` returns the id of the next endpoint request."""
        settings = board.settings
        near = destination.same_t0
        self._board = board
        self._to = destination
        self._control = control
        self._next_id = next_id
        self._base_ns = min(settings.base_rtt_near_ns, settings.base_rtt_ns) if near else settings.base_rtt_ns
        self._margin_ns = settings.path_late_ns
        self._packet_ns = [wires_ns(settings.mtu_bytes, rate, near) for rate in destination.rates_bps]
        """By plane: how much longer a full packet takes than a probe, by its time on each wire."""
        self._paths: dict[tuple[int, int], PathLength] = {}
        """By plane and number of the path."""
        self._waiting: dict[int, tuple[PathLength, int, int, Instant]] = {}
        """Request id -> (path, its plane, the EV, when sent) of the probes that wait for an answer."""
        self._batch_ns: Instant = -1
        self._batch_left = 0
        """When probes were last sent, and how many more may leave at that instant."""

    def longer(self, now: Instant, plane: int, path: int, ev: int, outer: bytes, seems_ns: int) -> int:
        """By how much a round trip over this path is longer than the base RTT, in ns; NEVER: no answer has come yet.

        By data it seems to be `seems_ns`. The path is probed if that is not certain, and no other peer's turn.
        """
        known = self._paths.get((plane, path))
        if known is None:
            if len(self._paths) >= REMEMBERED:
                del self._paths[next(iter(self._paths))]
            known = self._paths[plane, path] = PathLength(SPAN_RTTS * self._base_ns)
        contradicted = known.answers >= SURE and abs(seems_ns - known.least_ns) > self._margin_ns
        if (contradicted or known.answers < SURE) and now >= known.due_ns and self._may_ask(now):
            known.due_ns = now + known.rest_ns
            if contradicted:
                known.rest_ns = min(2 * known.rest_ns, REST_SPANS * SPAN_RTTS * self._base_ns)
            self._probe(now, plane, ev, outer, known)
        return known.least_ns

    def answered(self, now: Instant, request: int, ev: int) -> bool:
        """The peer answered a request, on `ev`. False: it was no probe of a path."""
        probe = self._waiting.pop(request, None)
        if probe is None:
            return False
        known, plane, asked_ev, asked_ns = probe
        self._board.stats.length_replies += 1
        longer_ns = max(0, now - asked_ns + self._packet_ns[plane] - self._base_ns)
        if ev == asked_ev:
            # The same way turned round: what the path is longer is in it twice.
            longer_ns >>= 1
        known.answers += 1
        if longer_ns <= known.least_ns + self._margin_ns:
            known.least_ns = min(known.least_ns, longer_ns)
            known.longer_ns = NEVER
        elif known.longer_ns == NEVER:
            known.longer_ns = longer_ns
        else:
            known.least_ns = min(known.longer_ns, longer_ns)
            known.longer_ns = NEVER
        return True

    def _may_ask(self, now: Instant) -> bool:
        """Whether one more probe may leave now: the NIC asks one peer at a time, about a few paths."""
        board = self._board
        if now != self._batch_ns:
            if now < board.length_turn_ns:
                return False
            board.length_turn_ns = now + board.settings.length_probe_gap_ns
            self._batch_ns = now
            self._batch_left = PATHS
        if not self._batch_left:
            return False
        self._batch_left -= 1
        return True

    def _probe(self, now: Instant, plane: int, ev: int, outer: bytes, known: PathLength) -> None:
        if len(self._waiting) >= WAITING:
            del self._waiting[next(iter(self._waiting))]
        request = self._next_id()
        self._waiting[request] = known, plane, ev, now
        self._board.stats.length_probes += 1
        packet = self._control.endpoint_request(ev, outer, request, OP_EV_PROBE, 0, timestamp_of(now))
        self._board.ports.offer(now, self._to.ports.port[plane], packet, True)
