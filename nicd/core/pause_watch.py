"""What a NIC tells of the pauses that its switches ask for: one event when a spell is worth it, one when it is over.

Owns the timers of the spells; `mrcfabric.pause_spells` decides what a spell is.
"""

from functools import partial

from mrcfabric.class_egress_config import CLASSES
from mrcfabric.pause_spells import PauseSpells
from mrcfabric.units import Instant
from mrcfabric.wire.pfc import PfcFrame
from nicd.core.board import Board
from nicd.core.class_ports import ClassPorts
from nicd.core.timers import Timer


class PauseWatch:
    """The spells of all ports of one NIC."""

    __slots__ = ("_board", "_ports", "_spells", "_timers")

    def __init__(self, board: Board, ports: ClassPorts) -> None:
        self._board = board
        self._ports = ports
        self._spells = PauseSpells(ports.pause_event_ns)
        self._timers: dict[tuple[int, int], Timer] = {}

    def heard(self, now: Instant, port: int, frame: PfcFrame) -> None:
        """A pause has come, and the port obeys it."""
        for cls in range(CLASSES):
            if frame.enabled >> cls & 1:
                until_ns = now + self._ports.pause_ns(port, frame.quanta[cls])
                self._set(port, cls, self._spells.heard(now, port, cls, until_ns))

    def _set(self, port: int, cls: int, due_ns: Instant) -> None:
        timer = self._timers.get((port, cls))
        if timer is None:
            timer = self._timers[port, cls] = Timer(self._board.timers, partial(self._come, port, cls))
        timer.set_by(due_ns)

    def _come(self, port: int, cls: int, now: Instant) -> None:
        event, due_ns = self._spells.come(now, port, cls)
        if event is not None:
            self._board.tell(event)
        self._set(port, cls, due_ns)
