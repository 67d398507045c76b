"""Probes that tell how long each plane to a peer is: endpoint EV probes that pass the queues of data.

Owns which EVs are probed, and which probes wait for their answers. `nicd.core.congestion.probed_lengths` says when,
and what the answers mean.

A request may travel in any class (MRC 1.0 2.6). In the control class it waits for no data but the packet that is on the
wire. The peer answers by the same way turned round and by one that was proved lately; the first answer counts.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from mrcfabric.wire.layout import OP_EV_PROBE, timestamp_of
from mrcfabric.wire.templates import ControlTemplate
from nicd.core.mrc.board import MrcBoard
from nicd.core.settings import DestinationLike

PROBES: Final = 2
"""By so many EVs each plane is probed at a time."""
CANDIDATES_MAX: Final = 64
"""EVs per plane that are probed in turn; with more paths than this, chance decides which ones."""


class LengthProbes:
    """The probes to one peer."""

    __slots__ = ("_board", "_candidates", "_control", "_index", "_next_id", "_rng", "_to", "_turn", "_waiting")

    def __init__(
        self,
        board: MrcBoard,
        index: int,
        destination: DestinationLike,
        rng: Rng,
        control: ControlTemplate,
        next_id: Callable[[], int],
    ) -> None:
        """`index` of the peer; `next_id` returns the id of the next endpoint request."""
        self._board = board
        self._index = index
        self._to = destination
        self._rng = rng
        self._control = control
        self._next_id = next_id
        self._candidates: list[list[int]] = []
        """EVs by plane, once the first probes have been asked for."""
        self._turn = 0
        self._waiting: dict[int, tuple[int, Instant]] = {}
        """Request id -> (plane, when sent) of the probes that wait for an answer."""

    def ask(self, now: Instant, planes: int) -> int:
        """Probe these planes, a bit each. Returns how many probes have left: none while it is another peer's turn.

        Answers to earlier probes are ignored from then on.
        """
        board = self._board
        if now < board.length_turn_ns:
            return 0
        board.length_turn_ns = now + board.settings.length_probe_gap_ns
        self._waiting.clear()
        if not self._candidates:
            self._draw()
        for plane, candidates in enumerate(self._candidates):
            if planes >> plane & 1:
                for turn in range(self._turn, self._turn + PROBES):
                    self._probe(now, plane, candidates, turn)
        self._turn += PROBES
        return len(self._waiting)

    def answered(self, now: Instant, request: int, port: int) -> tuple[int, int, bool] | None:
        """The plane that a probe has taken, its round trip in ns, and whether the answer took the same plane.

        The answer came in by `port`. None: it answers no probe that waits.
        """
        plane, asked_ns = self._waiting.pop(request, (-1, 0))
        if plane < 0:
            return None
        self._board.stats.length_replies += 1
        return plane, now - asked_ns, port == self._to.ports.port[plane]

    def _draw(self) -> None:
        to = self._to
        evs, _ = to.draw_evs(self._rng, max(PROBES, min(to.paths_per_plane, CANDIDATES_MAX)), 0)
        self._candidates = [[ev for ev in evs if to.path(ev).plane == plane] for plane in range(to.planes)]

    def _probe(self, now: Instant, plane: int, candidates: list[int], turn: int) -> None:
        """Probe one of these EVs, the next whose path is not denied."""
        denied = self._board.denied
        for number in range(len(candidates)):
            ev = candidates[(turn + number) % len(candidates)]
            path = self._to.path(ev)
            if not (denied and denied.covers(plane, path.number, self._index, not self._to.same_t0)):
                break
        else:
            return
        request = self._next_id()
        self._waiting[request] = plane, now
        self._board.stats.length_probes += 1
        packet = self._control.endpoint_request(ev, path.outer, request, OP_EV_PROBE, 0, timestamp_of(now))
        self._board.ports.offer(now, path.port, packet, True)
