"""The newest of everything that pages show, for any number of viewers.

Owns what is kept and how much. It queues nothing for a viewer. There is one newest text of each kind; a slow viewer
finds it replaced. There are bounded logs; each viewer knows how far it has read. `snapshot_loop` looks at the fabric;
`viewer` reads from here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from orchestrator.live.snapshot import Snapshot
from orchestrator.web import messages
from orchestrator.web.history import History

EVENTS_MAX: Final = 1000
RUN_LINES_MAX: Final = 2000
QUIET_WALL_S: Final = 1.0
"""How often snapshots are passed on while a fabric sleeps and does not change."""

Line: TypeAlias = Mapping[str, Any]
Watched: TypeAlias = tuple[str, int]
"""NIC and QPN."""


class Newest(NamedTuple):
    """A text and its place in the order of all texts; a viewer that has seen a later place skips it."""

    place: int
    text: str


class Log:
    """Lines, numbered from 0 in the order in which they came; the oldest are dropped."""

    def __init__(self, lines_max: int) -> None:
        self._lines: deque[Line] = deque(maxlen=lines_max)
        self.end = 0
        """The number that the next line gets."""

    def add(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._lines.append(line)
            self.end += 1

    def since(self, begin: int) -> tuple[list[Line], int]:
        """The lines from number `begin` on that are still kept, and how many are not."""
        first = self.end - len(self._lines)
        return list(islice(self._lines, max(0, begin - first), None)), max(0, first - begin)


class PageState:
    """The state for one fabric. Every change calls `on_news`."""

    def __init__(self, on_news: Callable[[], None]) -> None:
        self.history = History()
        self.snapshot: Newest | None = None
        self.trouble: Newest | None = None
        """Why the fabric cannot be looked at; None while it can."""
        self.evs: dict[Watched, Newest] = {}
        self.events = Log(EVENTS_MAX)
        self.run: dict[str, Any] | None = None
        self.run_lines = Log(RUN_LINES_MAX)
        self.run_place = 0
        """Grows with every change of `run` and every line of it."""
        self.seen: Snapshot | None = None
        self._told: Snapshot | None = None
        self._on_news = on_news
        self._places = 0

    def enter_snapshot(self, seen: Snapshot, look_hz: float | None = None) -> None:
        """Enter the fabric at a look; `look_hz`: looks a second lately, if that can be said."""
        self.history.enter(seen)
        recovered, self.trouble = self.trouble is not None, None
        self.seen = seen
        if not recovered and _same(self._told, seen):
            return
        self._told = seen
        self.snapshot = self._newest(messages.snapshot(seen, look_hz))

    def enter_trouble(self, text: str) -> None:
        """Enter the reason why the fabric could not be looked at."""
        self.trouble = self._newest(messages.error(text))

    def enter_evs(self, watched: Watched, text: str) -> None:
        """Enter the `evs` message of a QP."""
        self.evs[watched] = self._newest(text)

    def keep_evs_of(self, watched: Iterable[Watched]) -> None:
        """Forget the `evs` messages of all other QPs."""
        kept = set(watched)
        self.evs = {key: text for key, text in self.evs.items() if key in kept}

    def enter_events(self, lines: Sequence[Line]) -> None:
        """Enter new lines of the event log."""
        if lines:
            self.events.add(lines)
            self._on_news()

    def enter_run(self, state: dict[str, Any] | None, lines: Sequence[Line] = ()) -> None:
        """Enter the state of a run, and the lines that it has written since."""
        if state is None or self.run is None or state["number"] != self.run["number"]:
            self.run_lines = Log(RUN_LINES_MAX)
        self.run = state
        self.run_lines.add(lines)
        self._places += 1
        self.run_place = self._places
        self._on_news()

    def _newest(self, text: str) -> Newest:
        self._places += 1
        self._on_news()
        return Newest(self._places, text)


def _same(told: Snapshot | None, seen: Snapshot) -> bool:
    """Whether a viewer that has the one snapshot does not need the other yet."""
    # Not only later: the wall clock may have been set back.
    if told is None or seen.running or abs(seen.wall_s - told.wall_s) >= QUIET_WALL_S:
        return False
    return replace(told, number=0, wall_s=0, span_ns=0) == replace(seen, number=0, wall_s=0, span_ns=0)
