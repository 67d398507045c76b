"""Slows a daemon's process down: how much of wall time it may use, in windows of fabric time.

Pure. Owns the windows and computes the pauses; `mrcfabric.runner` makes the process pause. Nothing stops the process
from outside: it wakes by itself, even if the agent has died meanwhile, and a window ends without a message. Fabric time
does not count pauses; it passes more slowly.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from mrcfabric.errors import RefusedError
from mrcfabric.rng import PPM
from mrcfabric.units import NEVER, Instant

SPELLS_MAX: Final = 1024
"""How many windows a daemon accepts at once; it refuses more."""
SHARE_PPM_MIN: Final = 10_000
PAUSE_S_MIN: Final = 0.002
"""Shorter pauses are added up until they reach this: timers are no more precise than a millisecond."""
PAUSE_S_MAX: Final = 0.5
"""Longest single pause: a process that pauses longer would be taken for dead."""


class Spell(NamedTuple):
    """The share of wall time in force from `start_ns` up to, not including, `end_ns`; NEVER: no end is known."""

    start_ns: Instant
    end_ns: Instant
    share_ppm: int


class Brake:
    """The pauses of one process. The daemons in it are told of the windows."""

    def __init__(self) -> None:
        self.spells: tuple[Spell, ...] = ()
        self._owed_s = 0.0

    @property
    def end_ns(self) -> Instant:
        """When the last window with a known end is over; 0 without any."""
        return max((spell.end_ns for spell in self.spells if spell.end_ns < NEVER), default=0)

    def tell(self, spells: object) -> None:
        """Replace all windows by these, [[start_ns, end_ns, share_ppm], ...].

        Raises RefusedError for anything else, and then changes nothing.
        """
        self.spells = tuple(_spell(spell) for spell in _listed(spells))

    def share_ppm(self, now_ns: Instant) -> int:
        """The share of wall time left at an instant: the least of all windows that contain it."""
        return min((one.share_ppm for one in self.spells if one.start_ns <= now_ns < one.end_ns), default=PPM)

    def pause_s(self, worked_s: float, now_ns: Instant) -> float:
        """How long to pause after `worked_s` of wall time spent working; 0: do not pause."""
        share_ppm = self.share_ppm(now_ns)
        if share_ppm >= PPM:
            self._owed_s = 0.0
            return 0.0
        self._owed_s = min(self._owed_s + worked_s * (PPM - share_ppm) / share_ppm, PAUSE_S_MAX)
        if self._owed_s < PAUSE_S_MIN:
            return 0.0
        pause_s, self._owed_s = self._owed_s, 0.0
        return pause_s


def _listed(spells: object) -> Iterable[object]:
    if not isinstance(spells, list | tuple):
        raise RefusedError("windows: wanted a list of [start_ns, end_ns, share_ppm]")
    if len(spells) > SPELLS_MAX:
        raise RefusedError(f"windows: {len(spells)} are too many, at most {SPELLS_MAX}")
    return spells


def _spell(spell: object) -> Spell:
    if not isinstance(spell, list | tuple) or len(spell) != 3:
        raise RefusedError(f"windows: {spell!r} is no [start_ns, end_ns, share_ppm]")
    if not all(isinstance(figure, int) and not isinstance(figure, bool) for figure in spell):
        raise RefusedError(f"windows: {spell!r} are no three whole numbers")
    start_ns, end_ns, share_ppm = spell
    if not 0 <= start_ns < end_ns <= NEVER:
        raise RefusedError(f"windows: {spell!r} has no end after its start")
    if not SHARE_PPM_MIN <= share_ppm <= PPM:
        raise RefusedError(f"windows: {share_ppm} ppm will not do, {SHARE_PPM_MIN} to {PPM}")
    return Spell(start_ns, end_ns, share_ppm)
