"""The search for a living path, when a peer falls silent while the QP has work under way.

Owns which EVs the search probes, and how fast. `recovery` begins it; `probe` sends the packets and judges the answers.
One probe on one EV finds a living path among many only by luck. So each round probes more paths than
the one before, every plane in turn, until every path has been probed, and goes on until the peer is heard.

MRC 1.0 3 leaves open what a sender does that hears nothing; its probes are those of 11.2.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.units import Instant
from nicd.core.ev_state import EvState
from nicd.core.mrc.ev_profile import EvProfile
from nicd.core.mrc.search_rounds import Rounds
from nicd.core.timers import Timer, Timers

_FRAGILE_ROUNDS: Final = 4
"""For so many rounds after a search, the paths that it found are not relied upon."""


class PathSearch:
    """One QP's search."""

    __slots__ = ("_ask", "_found_ns", "_order", "_profile", "_round_ns", "_rounds", "_timer", "_usable")

    def __init__(
        self,
        profile: EvProfile,
        round_ns: int,
        timers: Timers,
        usable: Callable[[], int],
        ask: Callable[[Instant, int], bool],
    ) -> None:
        """`round_ns`: time between rounds; `usable` returns the planes that can send, `ask` probes one EV."""
        self._profile = profile
        self._round_ns = round_ns
        self._usable = usable
        self._ask = ask
        self._order: list[int] = []
        """EVs to probe, one per path, planes in turn; the next one first."""
        self._rounds = Rounds()
        self._found_ns: Instant = -1
        self._timer = Timer(timers, self._next_round)

    @property
    def active(self) -> bool:
        """Whether the peer is silent and the search has sent probes of its own."""
        return self._rounds.sent > 0

    def urgent(self, now: Instant) -> bool:
        """Whether no path was known to live until a moment ago: then one answer on a path is enough to use it."""
        return self._rounds.sent > 0 or now <= self._found_ns

    def begin(self, now: Instant) -> None:
        """The QP has sent one probe after a silence. Search with more probes if that one has no answer either."""
        if self.urgent(now):
            # The path found a moment ago is dead again, or its answer was luck: search with full rounds at once.
            self._rounds.widen()
            self._timer.set_by(now + 1)
        else:
            self._timer.set_by(now + self._round_ns)

    def heard(self, now: Instant) -> None:
        """The peer was heard: the search is over."""
        self._timer.cancel()
        if self._rounds.sent:
            # Other answers of the same round are still under way: stay urgent for a while.
            self._found_ns = now + _FRAGILE_ROUNDS * self._round_ns
            self._rounds.reset()
            self._order = []

    def stop(self) -> None:
        """Stop: the QP is gone, or waits for nothing more."""
        self._timer.cancel()
        self._rounds.reset()

    def _next_round(self, now: Instant) -> None:
        mask = self._usable()
        if not self._order:
            self._order = self._one_per_path()
        total = len(self._order)
        for _ in range(self._rounds.next(total)):
            index = self._order.pop(0)
            self._order.append(index)
            if mask >> self._profile.plane[index] & 1:
                self._ask(now, index)
        self._timer.set(now + self._round_ns * self._rounds.pause(total))

    def _one_per_path(self) -> list[int]:
        profile = self._profile
        by_plane: list[dict[int, int]] = [{} for _ in profile.decks]
        for index, plane in enumerate(profile.plane):
            if profile.states[index] != EvState.DENIED:
                by_plane[plane].setdefault(profile.path[index], index)
        lists = [list(paths.values()) for paths in by_plane]
        return [paths[place] for place in range(max(map(len, lists))) for paths in lists if place < len(paths)]
