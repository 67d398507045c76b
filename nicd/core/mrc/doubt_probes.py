"""Probes of paths that lose packets while their plane is crowded: is the queue full, or is the path dead?

Owns which paths are asked, and what silence means. `doubts` counts the losses that a full queue explains, and gives a
path up after many of them in a row. But the window of a crowded plane falls to a packet, each loss takes a timeout, and
so many losses take a hundred round trips.

A probe in the control class passes the queues of data. Together with the paths in question another one of their plane
is probed. A path is dead that answers none of several probes while others answer probes that left no earlier: these met
the same queues of the control class, however long they are. The next probes leave when one of the last was answered, so
that a receiver to which many send gets no more of them than it can answer.

A deliberate addition: the probes are the endpoint EV probes of MRC 1.0 2.6, which may travel in any class.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from mrcfabric.units import NEVER, Instant
from nicd.core.mrc.ev_deck import PlaneDeck
from nicd.core.timers import Timer, Timers

_LOSSES: Final = 2
"""So many losses in a row on a path raise the question."""
_ASKED: Final = 4
"""So many paths in question are asked in a round, those first that were asked least."""
_OTHERS_MAX: Final = 64
"""And so many others at most."""
_ODDS: Final = 2
"""A path must be silent the more often the more probes were lost on paths that live, as in `doubts`."""
_WAIT_RTTS: Final = 4
"""After so many base RTTs without an answer more other paths are asked; after twice the time the next time."""
_GRACE_RTTS: Final = 2
"""Answers of different paths are so many base RTTs apart at most."""
_ANSWER_RTTS: Final = 3
"""An answer is overdue after so many base RTTs, and twice by how much its path is longer."""
_UNHEARD: Final = 5
"""After so many rounds without an answer the plane is silent, and no path of it is to blame."""

AskPath: TypeAlias = Callable[[Instant, int, Callable[[Instant, int], None]], bool]
"""(now, EV index, what to call with the answer): probe an EV in the control class. False: its plane cannot send."""


class _Path:
    """A path that is being asked."""

    __slots__ = ("answers", "asked_ns", "doubted", "ev", "given_up", "outlived")

    def __init__(self, ev: int) -> None:
        self.ev = ev
        self.doubted = False
        """Whether it is in question; others are asked for comparison."""
        self.given_up = False
        self.asked_ns: list[Instant] = []
        """When its probes left."""
        self.answers = 0
        self.outlived = 0
        """Probes that left no later than one on another path that was answered, and whose answers are overdue."""


class _Plane:
    """A plane with paths in question."""

    __slots__ = ("due_ns", "heard_ns", "others", "paths", "turn", "unheard")

    def __init__(self, due_ns: Instant) -> None:
        self.paths: dict[int, _Path] = {}
        """By the number of the path."""
        self.due_ns = due_ns
        """When this round is over."""
        self.heard_ns: Instant = -1
        """When the latest probe left that was answered; -1: none was."""
        self.others = 1
        """How many paths that are not in question the next round asks."""
        self.turn = 0
        self.unheard = 0
        """Rounds in a row without an answer."""

    def dead(self, silences: int) -> list[_Path]:
        """The paths whose silence is more than chance: so many probes, if those on paths that live are all answered."""
        alive = [path for path in self.paths.values() if path.answers]
        answered = sum(path.answers for path in alive)
        lost = sum(max(0, path.outlived - path.answers) for path in alive)
        least = silences * (answered + _ODDS * lost)
        return [
            path
            for path in self.paths.values()
            if not (path.answers or path.given_up) and path.outlived * answered >= least > 0
        ]


class DoubtProbes:
    """The questions of one QP."""

    __slots__ = ("_ask", "_base_ns", "_dead", "_decks", "_lag", "_path", "_plane", "_planes", "_silences", "_timer")

    def __init__(
        self,
        timers: Timers,
        base_rtt_ns: int,
        silences: int,
        plane: Sequence[int],
        path: Sequence[int],
        decks: Sequence[PlaneDeck],
        lag: Callable[[int], int],
        ask: AskPath,
        dead: Callable[[Instant, int], None],
    ) -> None:
        """`silences`: probes that a dead path has not answered; 0: no path is asked. `plane` and `path`: of each EV of
        the profile; `decks`: its active EVs, by plane; `lag`: by how many ns the path of an EV is longer than the base
        RTT.

        `dead` is called with an EV whose path is dead: (now, index).
        """
        self._base_ns = base_rtt_ns
        self._silences = silences
        self._plane = plane
        self._path = path
        self._decks = decks
        self._lag = lag
        self._ask = ask
        self._dead = dead
        self._planes: dict[int, _Plane] = {}
        """The planes with questions; empty in a fabric that loses nothing."""
        self._timer = Timer(timers, self._due)

    def doubt(self, now: Instant, ev: int, losses: int) -> None:
        """So many packets in a row were lost on the path of this EV, which a full queue explains."""
        if losses < _LOSSES or not self._silences:
            return
        plane = self._planes.get(self._plane[ev])
        if plane is None:
            plane = self._planes[self._plane[ev]] = _Plane(now + 1)
            self._timer.set_by(now + 1)
        path = plane.paths.get(self._path[ev])
        if path is None:
            path = plane.paths[self._path[ev]] = _Path(ev)
        path.doubted = not (path.answers or path.given_up)

    def stop(self) -> None:
        """The QP is gone."""
        self._planes.clear()
        self._timer.cancel()

    def _due(self, now: Instant) -> None:
        for number, plane in list(self._planes.items()):
            if plane.due_ns <= now:
                self._next_round(now, number, plane)
        soonest = min((plane.due_ns for plane in self._planes.values()), default=NEVER)
        if soonest != NEVER:
            self._timer.set_by(soonest)

    def _next_round(self, now: Instant, number: int, plane: _Plane) -> None:
        """Give up the paths that are dead, and ask again while others are in question."""
        for path in plane.paths.values():
            # The answer comes back by the same way, too: what a path is longer is in it twice.
            latest_ns = min(plane.heard_ns, now - 2 * self._lag(path.ev) - _ANSWER_RTTS * self._base_ns)
            path.outlived = sum(asked_ns <= latest_ns for asked_ns in path.asked_ns)
        for path in plane.dead(self._silences):
            path.given_up = True
            self._dead(now, path.ev)
        # A path that did not answer when another one did is in question, too.
        for path in plane.paths.values():
            path.doubted = not (path.answers or path.given_up) and (path.doubted or path.outlived > 0)
        doubted = [path for path in plane.paths.values() if path.doubted]
        if not doubted or plane.unheard >= _UNHEARD:
            del self._planes[number]
            return
        for path in sorted(doubted, key=lambda path: len(path.asked_ns))[:_ASKED]:
            self._probe(now, number, path)
        for path in self._others(number, plane):
            self._probe(now, number, path)
        plane.due_ns = now + (_WAIT_RTTS * self._base_ns << plane.unheard)
        plane.others = min(2 * plane.others, _OTHERS_MAX)
        plane.unheard += 1

    def _others(self, number: int, plane: _Plane) -> list[_Path]:
        """Paths that are not in question, in turn."""
        cards = {self._path[card]: card for card in self._decks[number].cards}
        known = plane.paths
        found = [path for path in cards if path not in known or not (known[path].doubted or known[path].given_up)]
        first = plane.turn % len(found) if found else 0
        plane.turn += plane.others
        chosen = (found[first:] + found[:first])[: plane.others]
        return [plane.paths.setdefault(path, _Path(cards[path])) for path in chosen]

    def _probe(self, now: Instant, number: int, path: _Path) -> None:
        if self._ask(now, path.ev, partial(self._answered, number, path, now)):
            path.asked_ns.append(now)

    def _answered(self, number: int, path: _Path, asked_ns: Instant, now: Instant, _port: int) -> None:
        plane = self._planes.get(number)
        if plane is None or plane.paths.get(self._path[path.ev]) is not path:
            return
        path.answers += 1
        path.doubted = False
        plane.heard_ns = max(plane.heard_ns, asked_ns)
        # Rounds follow the answers again, and one other path is enough.
        plane.unheard = 0
        plane.others = 1
        due_ns = now + _GRACE_RTTS * self._base_ns
        if due_ns < plane.due_ns:
            plane.due_ns = due_ns
            self._timer.set_by(due_ns)
