"""The attached fabric of an experiment, for callers without an event loop.

Owns, per fabric, one event loop in a thread of its own, the attached fabric in that loop, and what earlier steps of the
experiment have begun: workloads by name and the watch over the fabric. The lease ends with the process, however that
ends, and every fault of the experiment ends with the lease.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

from mrcfabric.errors import ConfigError
from orchestrator.api.fabric import AttachedFabric
from orchestrator.api.watch import Watch
from orchestrator.api.work import Work
from orchestrator.fabric import Fabric, arguments

T = TypeVar("T")

NAME_KEY: Final = "mrcfabric_name"
FOLDER_KEY: Final = "mrcfabric_run_dir"

_OPEN: dict[tuple[str | None, str | None], "Session"] = {}


class Session:
    """One attached fabric. Make it with `session_of`; all methods block."""

    def __init__(self, name: str | None, run_dir: str | None) -> None:
        """Raises ConfigError when no such fabric runs, or when several run and the arguments do not pick one."""
        self.works: dict[str, Work] = {}
        """By name: the workloads that were started."""
        self._watch: Watch | None = None
        self._stack = AsyncExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chaosmrc", daemon=True)
        self._thread.start()
        attached = Fabric.attach(name, None if run_dir is None else Path(run_dir))
        try:
            self.fabric: AttachedFabric = self.do(self._stack.enter_async_context(attached))
        except BaseException:
            self._end()
            raise

    def do(self, verb: Awaitable[T]) -> T:
        """Run a coroutine of the fabric on the session's loop and return its result; raises what it raises."""

        async def carried_out() -> T:
            return await verb

        return asyncio.run_coroutine_threadsafe(carried_out(), self._loop).result()

    def watch(self) -> Watch:
        """The watch over the fabric. The first call begins it; `start` calls this before the first workload."""
        if self._watch is None:
            self._watch = self.do(self.fabric.watch())
        return self._watch

    def start(self, begin: Callable[[], Awaitable[Work]]) -> Work:
        """Start a workload, with the watch running, and remember it."""
        self.watch()
        work = self.do(begin())
        self.works[work.program.name] = work
        return work

    def work(self, name: str) -> Work:
        """A workload that this experiment has started. Raises ConfigError."""
        if arguments.text("name", name) not in self.works:
            known = "there are " + ", ".join(self.works) if self.works else "start_workload starts one"
            raise ConfigError("name", f"{name!r} is no workload of this experiment", known)
        return self.works[name]

    def close(self) -> None:
        """Detach from the fabric, which heals the faults of this experiment."""
        try:
            self.do(self._stack.aclose())
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def session_of(configuration: Mapping[str, Any] | None) -> Session:
    """The session of the fabric that an experiment's configuration names; the first call opens it."""
    given = arguments.table("configuration", configuration)
    key = _word(given, NAME_KEY), _word(given, FOLDER_KEY)
    if key not in _OPEN:
        _OPEN[key] = Session(*key)
    return _OPEN[key]


def _word(given: Mapping[str, Any], key: str) -> str | None:
    word = given.get(key)
    return None if word is None else arguments.text(key, word)


def close_all() -> None:
    """End every session of this process."""
    while _OPEN:
        _, session = _OPEN.popitem()
        session.close()
