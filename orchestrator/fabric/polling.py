"""Asks all daemons for their glances, once for everybody who watches the fabric.

Owns when a daemon is asked and when its last answer is good enough. Daemons that share a process are asked with one
question (`orchestrator.fabric.batches`). A daemon is asked at most once in `SHARED_WALL_S`,
and while the fabric sleeps only once. A daemon that has not answered after `BRIEF_WALL_S` is late: its last answer is
used if it is at most `RECENT_WALL_S` old. Without such an answer the look waits up to `PATIENCE_WALL_S`; then the
daemon is silent. Its one question stays open, and later looks do not wait for it. `mrcfabric.glance` says what a glance
holds; `orchestrator.live.live_view` shows it.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.glance import Glance
from orchestrator.fabric.daemons import Daemons
from orchestrator.fabric.readings import ClockReading
from orchestrator.hosts.clock.timekeeper import Timekeeper

SHARED_WALL_S: Final = 0.1
"""How old an answer may be that a second watcher gets."""
BRIEF_WALL_S: Final = 0.2
"""How long a look waits for all daemons. Many busy daemons on few cores need longer; their older answers serve then."""
RECENT_WALL_S: Final = 2.0
"""An answer older than this is not shown any more."""
PATIENCE_WALL_S: Final = 0.5
"""A daemon that has not answered by then is silent in this look."""
ANSWER_WALL_S: Final = 5.0
"""A question that has been open for this long is given up; then the daemon may be asked again."""


class Glances(NamedTuple):
    """One look at the daemons."""

    clock: ClockReading
    """Read after the daemons had answered."""
    wall_s: float
    """Unix time."""
    nodes: dict[str, Glance | None]
    """None: it has not answered in time, or its process has ended."""
    down: tuple[str, ...]
    """Those whose process has ended."""
    late: tuple[str, ...] = ()
    """Those whose answer is from before this look, up to `RECENT_WALL_S` old."""

    def record(self) -> dict[str, Any]:
        """As plain data: the fields of the clock, and those of this tuple."""
        return {
            **self.clock._asdict(),
            "wall_s": self.wall_s,
            "nodes": self.nodes,
            "down": list(self.down),
            "late": list(self.late),
        }

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Glances":
        """Make `Glances` of what `record` returned."""
        clock = ClockReading(**{name: record[name] for name in ClockReading._fields})
        return cls(clock, record["wall_s"], record["nodes"], tuple(record["down"]), tuple(record["late"]))


class _Kept(NamedTuple):
    """The newest answer of a daemon."""

    glance: Glance
    incarnation: int
    answered_s: float
    """Monotonic."""
    rest_s: float | None
    """Identifies the sleep of the fabric in which it was asked (`Timekeeper.rest_s`); None: time was running."""


class Poller:
    """Asks the daemons of one fabric. `close` it with the fabric."""

    def __init__(self, daemons: Daemons, timekeeper: Timekeeper) -> None:
        self._daemons = daemons
        self._time = timekeeper
        self._kept: dict[str, _Kept] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._slow: set[str] = set()
        """Daemons whose open question has taken longer than one look waits."""

    async def look(self, nodes: Sequence[str] | None = None) -> Glances:
        """Get the newest glances of these nodes (None: all). Raises ConfigError for a node that does not exist."""
        names = list(self._daemons.members) if nodes is None else list(nodes)
        alive = [name for name in names if self._daemons.member(name).alive]
        began_s = time.monotonic()
        fresh_s, recent_s = began_s - SHARED_WALL_S, began_s - RECENT_WALL_S
        stale = [name for name in alive if name not in self._asking and self._newest(name, fresh_s) is None]
        for group in self._daemons.batches.groups(stale):
            self._begin(group)
        await self._wait(alive, BRIEF_WALL_S)
        unheard = [name for name in alive if self._newest(name, recent_s) is None and name not in self._slow]
        await self._wait(unheard, PATIENCE_WALL_S - BRIEF_WALL_S)
        self._slow.update(name for name in unheard if name in self._asking)
        down = frozenset(name for name in names if not self._daemons.member(name).alive)
        found = {name: None if name in down else self._newest(name, recent_s) for name in names}
        late = [name for name in alive if found[name] is not None and self._newest(name, fresh_s) is None]
        clock = ClockReading.of(self._time, self._daemons.whole)
        return Glances(clock, time.time(), found, tuple(name for name in names if name in down), tuple(late))

    async def close(self) -> None:
        """Cancel the questions that are open."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _wait(self, names: Iterable[str], wall_s: float) -> None:
        """Wait up to `wall_s` until these daemons have answered; skip those known to be slow."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wall_s
        while asked := {self._asking[name] for name in names if name in self._asking and name not in self._slow}:
            _, pending = await asyncio.wait(asked, timeout=max(0.0, until_s - loop.time()))
            # Those that an answer has left out are being asked once more, each on its own.
            if pending or loop.time() > until_s:
                return

    def _begin(self, names: list[str]) -> None:
        asking = asyncio.create_task(self._ask(names))
        self._asking.update(dict.fromkeys(names, asking))

    async def _ask(self, names: list[str]) -> None:
        """Ask daemons of one process, with one question; then those that the answer leaves out, one by one."""
        rest_s, lives = self._time.rest_s, {name: self._daemons.members[name].incarnation for name in names}
        told: dict[str, Glance] = {}
        alone = len(names) == 1
        try:
            if alone:
                told = {names[0]: await self._daemons.call(names[0], "glance", timeout_s=ANSWER_WALL_S)}
            else:
                told = await self._daemons.batches.ask_group(names, "glance", {}, ANSWER_WALL_S)
        except NoAnswerError:
            alone = True
        except RefusedError:
            pass
        finally:
            for name in names:
                del self._asking[name]
                self._slow.discard(name)
        if rest_s != self._time.rest_s:
            rest_s = None
        for name in names:
            if name in told:
                self._kept[name] = _Kept(told[name], lives[name], time.monotonic(), rest_s)
            elif alone:
                self._kept.pop(name, None)
            else:
                self._begin([name])

    def _newest(self, name: str, since_s: float) -> Glance | None:
        """What a daemon has answered since `since_s` or in the present sleep of the fabric; None: nothing."""
        kept = self._kept.get(name)
        if kept is None or kept.incarnation != self._daemons.members[name].incarnation:
            return None
        at_rest = kept.rest_s is not None and kept.rest_s == self._time.rest_s
        return kept.glance if at_rest or kept.answered_s >= since_s else None
