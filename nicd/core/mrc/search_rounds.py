"""How fast a search for a living path widens: the numbers of probes of its rounds.

Owns the numbers alone; `path_search` and `reverse_set` decide what to probe and when the search ends. A needless search
costs little, and a needed one has probed every path in three rounds.
"""

from typing import Final

_GROWTH: Final = 8
"""A round has so many times as many probes as the one before."""
ROUND_MAX: Final = 128
"""And no more than this: about 18 KB."""
_COVERS_FAST: Final = 4
"""After every path has been tried so often, rounds become rarer."""
_SLOW_ROUNDS: Final = 4
"""By this factor: a path that lives again is found within as many rounds and its own."""


class Rounds:
    """The rounds of one search."""

    __slots__ = ("_size", "sent")

    def __init__(self) -> None:
        self._size = 0
        self.sent = 0
        """Probes of all rounds so far."""

    def reset(self) -> None:
        """The search is over, or begins anew."""
        self._size = self.sent = 0

    def widen(self) -> None:
        """The next round is as large as any."""
        self._size = ROUND_MAX

    def next(self, total: int) -> int:
        """Probes of the next round, where there are so many paths."""
        self._size = min(max(_GROWTH, self._size * _GROWTH), total, ROUND_MAX)
        self.sent += self._size
        return self._size

    def pause(self, total: int) -> int:
        """How many times the usual time lies before the round after."""
        return _SLOW_ROUNDS if self.sent > _COVERS_FAST * total else 1
