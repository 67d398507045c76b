"""How much of wall time a daemon may use, in windows of fabric time: the rest of it its process does nothing.

Pure. Owns the windows and the reckoning of pauses; that a process pauses is `mrcfabric.runner`'s part. Nothing is
stopped from outside: a process that pauses wakes by itself, whoever has died meanwhile, and the end of a window needs
nobody. Fabric time does not see pauses: it passes more slowly.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from mrcfabric.errors import RefusedError
from mrcfabric.rng import PPM
from mrcfabric.units import NEVER, Instant

SPELLS_MAX: Final = 1024
"""Windows that a daemon can be told of at once; more are refused."""
SHARE_PPM_MIN: Final = 10_000
PAUSE_S_MIN: Final = 0.002
"""Shorter ones are put off until they make up one: timers are no better than a millisecond."""
PAUSE_S_MAX: Final = 0.5
"""Of one pause: whoever waits for the process must not take it for dead."""


class Spell(NamedTuple):
    """From `start_ns` up to, not including, `end_ns` (NEVER: until told otherwise) this share of wall time is left."""

    start_ns: Instant
    end_ns: Instant
    share_ppm: int


class Brake:
    """The pauses of one process, whose daemons are told of their spells."""

    def __init__(self) -> None:
        self.spells: tuple[Spell, ...] = ()
        self._owed_s = 0.0

    @property
    def end_ns(self) -> Instant:
        """When the last spell that ends is over; 0 without any."""
        return max((spell.end_ns for spell in self.spells if spell.end_ns < NEVER), default=0)

    def tell(self, spells: object) -> None:
        """These, [[start_ns, end_ns, share_ppm], ...], instead of those told before.

        Raises RefusedError for anything else; nothing has changed then.
        """
        self.spells = tuple(_spell(spell) for spell in _listed(spells))

    def share_ppm(self, now_ns: Instant) -> int:
        """What is left at an instant: of several spells the least."""
        return min((one.share_ppm for one in self.spells if one.start_ns <= now_ns < one.end_ns), default=PPM)

    def pause_s(self, worked_s: float, now_ns: Instant) -> float:
        """How long to do nothing after so much wall time of work; 0: go on."""
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
