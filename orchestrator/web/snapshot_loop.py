"""Looks at one fabric for the open pages, and puts what it sees into the page state.

Owns the pace: `look_hz` while a page is open, a look every `IDLE_WALL_S` while none is. After each look it pauses for
at least `PAUSE_SHARE` of the look's length. A look mostly waits for busy daemons, so a large fabric on a small machine
is looked at less often, and its daemons are not asked all the time. `orchestrator.live` says what a look asks of
daemons.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.live.snapshot import Snapshot
from orchestrator.web import messages
from orchestrator.web.page_state import PageState, Watched

LOOK_HZ: Final = 5.0
LOOK_HZ_MIN: Final = 0.2
LOOK_HZ_MAX: Final = 20.0
IDLE_WALL_S: Final = 1.0
PAUSE_SHARE: Final = 0.25
PACE_LOOKS: Final = 8
"""The pace that pages are told of is that of so many looks."""
STRIPS_MAX: Final = 16
"""How many QPs are asked for their EVs at one look. When pages watch more, they take turns, so NICs do no more work."""

_TROUBLES = (ConfigError, RefusedError, NoAnswerError)


class LiveView(Protocol):
    """What this module needs of `orchestrator.live.live_view.LiveView`."""

    async def look(self) -> Snapshot: ...


class Asked(Protocol):
    """What this module needs of a fabric (`orchestrator.fabric.verbs.Verbs`)."""

    async def call(self, node: str, op: str, args: dict[str, Any] | None = None) -> Any: ...


class SnapshotLoop:
    """Run `await go_on()` for as long as the fabric is to be looked at."""

    def __init__(
        self,
        fabric: Asked,
        live_view: LiveView,
        page_state: PageState,
        watched: Callable[[], Iterable[Watched] | None],
        look_hz: float = LOOK_HZ,
    ) -> None:
        """`watched` returns the QPs that pages watch now; None when no page is open."""
        self._fabric = fabric
        self._live_view = live_view
        self._page_state = page_state
        self._watched = watched
        self._period_s = 1 / look_hz
        self._called = asyncio.Event()
        self._stale: dict[Watched, None] = {}
        """The QPs whose EVs are to be asked for, those that have waited longest first."""
        self._known: frozenset[Watched] = frozenset()
        self._periods_s: deque[float] = deque(maxlen=PACE_LOOKS)
        """From look to look, since a page was opened."""

    def hurry(self) -> None:
        """Look now: a page has opened, or watches something else."""
        self._called.set()

    async def go_on(self) -> None:
        """Look repeatedly until cancelled; failures go into the page state."""
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            self._called.clear()
            await self._look()
            took_s = loop.time() - began_s
            if self._watched() is None or self._page_state.trouble is not None:
                await self._pause(IDLE_WALL_S)
                self._periods_s.clear()
            else:
                await asyncio.sleep(max(PAUSE_SHARE * took_s, self._period_s - took_s))
                self._periods_s.append(loop.time() - began_s)

    async def _pause(self, wall_s: float) -> None:
        try:
            async with asyncio.timeout(wall_s):
                await self._called.wait()
        except TimeoutError:
            pass

    async def _look(self) -> None:
        page_state, before = self._page_state, self._page_state.seen
        try:
            seen = await self._live_view.look()
        except _TROUBLES as error:
            page_state.enter_trouble(str(error))
            return
        page_state.enter_snapshot(seen, self._pace_hz())
        watched = frozenset(self._watched() or ())
        # While the fabric sleeps, EVs do not change.
        moved = seen.running or before is None or before.at_ns != seen.at_ns
        if moved or watched != self._known:
            page_state.keep_evs_of(watched)
            kept = [one for one in self._stale if one in watched]
            self._stale = dict.fromkeys([*kept, *sorted(watched if moved else watched - self._known)])
            self._known = watched
        now = list(self._stale)[:STRIPS_MAX]
        for one in now:
            del self._stale[one]
        await asyncio.gather(*(self._strip(one) for one in now))

    def _pace_hz(self) -> float | None:
        """Looks a second lately; None while that cannot be said."""
        return round(len(self._periods_s) / sum(self._periods_s), 2) if self._periods_s else None

    async def _strip(self, watched: Watched) -> None:
        nic, qpn = watched
        try:
            rows, why = await self._fabric.call(nic, "ev_table", {"qpn": qpn}), ""
        except _TROUBLES as error:
            rows, why = [], str(error)
        self._page_state.enter_evs(watched, messages.evs(nic, qpn, rows, why))
