"""The search for a living path, when a peer falls silent while the QP has work under way.

Owns which EVs the search probes, and how fast. `recovery` begins it; `probe` sends the packets and judges the answers.
One probe on one EV finds a living path among many only by luck. So each round probes more paths than
the one before, every plane in turn, until every path has been probed, and goes on until the peer is heard.

A full queue silences a peer as well, and if all who send to it searched, their probes would keep the queue full. So
where planes are crowded the path that delivered last is asked first, in the control class, which passes the queues of
data. If it answers, the way is open, and there is nothing to search for.

MRC 1.0 3 leaves open what a sender does that hears nothing; its probes are those of 11.2.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from mrcfabric.units import Instant
from nicd.core.ev_state import EvState
from nicd.core.mrc.doubt_probes import AskPath
from nicd.core.mrc.ev_profile import EvProfile
from nicd.core.mrc.search_rounds import Rounds
from nicd.core.timers import Timer, Timers

_CHECK_ROUNDS: Final = 2
"""So many rounds pass until the first probes leave, in which the path that delivered last may show that it lives."""
_FRAGILE_ROUNDS: Final = 4
"""For so many rounds after a search, the paths that it found are not relied upon."""


class PathSearch:
    """One QP's search."""

    __slots__ = (
        "_ask", "_check", "_checks", "_found_ns", "_is_crowded", "_order", "_profile", "_round_ns", "_rounds", "_timer",
        "_usable",
    )  # fmt: skip

    def __init__(
        self,
        profile: EvProfile,
        round_ns: int,
        timers: Timers,
        usable: Callable[[], int],
        ask: Callable[[Instant, int], bool],
        check: AskPath,
        is_crowded: Callable[[Instant, int], bool],
    ) -> None:
        """`round_ns`: time between rounds; `usable` returns the planes that can send, `ask` probes one EV.

        `check` probes one EV past the queues of data, and calls what it is given with the answer. `is_crowded` says of
        planes, a bit each, whether a full queue explains a silence on all of them.
        """
        self._profile = profile
        self._round_ns = round_ns
        self._usable = usable
        self._ask = ask
        self._check = check
        self._is_crowded = is_crowded
        self._checks = 0
        """Times that a path was asked before a search."""
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
        elif self._is_crowded(now, self._usable()) and (latest := self._latest()) >= 0:
            self._checks += 1
            self._check(now, latest, partial(self._open, self._checks))
            self._timer.set_by(now + _CHECK_ROUNDS * self._round_ns)
        else:
            self._timer.set_by(now + self._round_ns)

    def _latest(self) -> int:
        """The active EV on whose path the latest packet arrived; -1: none may send."""
        mask, profile = self._usable(), self._profile
        delivered, way = profile.records.delivered_ns, profile.records.way
        cards = [card for plane, deck in enumerate(profile.decks) if mask >> plane & 1 for card in deck.cards]
        return max(cards, key=lambda card: delivered[way[card]], default=-1)

    def _open(self, check: int, _now: Instant, _port: int) -> None:
        """The path that was asked lives. An answer to an earlier question says nothing of this silence."""
        if check == self._checks and not self._rounds.sent:
            self._timer.cancel()

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
