"""Carries out the commands of a controller about self probes: rounds over all ways, and loops.

Owns the checks; `self_probe` sends the probes.
"""

from mrcfabric.errors import RefusedError
from mrcfabric.units import Instant
from nicd.core.commands import ProbeLinks, ProbeLoop
from nicd.core.events import Result
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.self_probe import SelfProber
from nicd.core.settings_self_probe import LOOP_PROBES_MAX, SELF_PROBE_PERIOD_NS_MIN
from nicd.core.transport import CarryOut


class SelfProbeControl:
    """The self-probe commands of one NIC."""

    __slots__ = ("_board", "_self_prober", "commands")

    def __init__(self, board: MrcBoard, self_prober: SelfProber | None) -> None:
        """`self_prober` None: the NIC knows no way back to itself, and refuses."""
        self._board = board
        self._self_prober = self_prober
        self.commands: dict[type, CarryOut] = {ProbeLinks: self._probe_links, ProbeLoop: self._probe_loop}

    def _probe_links(self, now: Instant, command: ProbeLinks) -> Result:
        if self._self_prober is None:
            raise RefusedError("this NIC knows no way back to itself")
        if command.period_ns and command.period_ns < SELF_PROBE_PERIOD_NS_MIN:
            raise RefusedError(f"a period of {command.period_ns} ns; possible are 0 and {SELF_PROBE_PERIOD_NS_MIN} on")
        if command.rounds is not None and command.rounds < 1:
            raise RefusedError(f"{command.rounds} rounds")
        self._self_prober.probe(now, command.period_ns, command.rounds)
        return {"period_ns": command.period_ns, "rounds": command.rounds}

    def _probe_loop(self, now: Instant, command: ProbeLoop) -> Result:
        turns = self._board.config.turns
        if self._self_prober is None or turns is None:
            raise RefusedError("this NIC knows no way back to itself")
        way = command.plane, command.t1_out, command.t0, command.t1_home
        limits = turns.planes, turns.t1s, turns.t0s, turns.t1s
        if not all(0 <= value < limit for value, limit in zip(way, limits, strict=True)):
            raise RefusedError("there is no such plane, T1 or T0")
        if not 1 <= command.probes <= LOOP_PROBES_MAX or command.gap_ns < 1:
            raise RefusedError(
                f"{command.probes} probes, one per {command.gap_ns} ns; 1 to {LOOP_PROBES_MAX}, from 1 ns"
            )
        self._self_prober.probe_loop(now, *way, command.probes, command.gap_ns)
        return {"plane": command.plane, "probes": command.probes}
