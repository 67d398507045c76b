"""Daemons in processes that they share: each is a child of its own, which comes and ends alone, or with its process.

Owns which daemon has which life in which process, and forks a shared process when its first daemon joins.
`mrcfabric.shared_process` is the process, `orchestrator.process.launcher` the way to it.
"""

import asyncio
import itertools
import os
import signal
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.process.launcher import Child, Launcher, ProcessFailedError, last_line, where_logged

TRIES = 3
"""How often to begin with a new process when one dies before anybody has joined."""


@dataclass(frozen=True, slots=True)
class Member:
    """One daemon that is to run in a shared process."""

    name: str
    table: Any
    """Its configuration."""
    log: Path | None = None


class SharedProcesses:
    """The shared processes of one launcher, which calls `on_death` for every daemon in them."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        launcher.on_said = self._said
        self._processes: dict[str, Child] = {}
        """Name of a shared process -> the process, while it lives."""
        self._there: dict[int, dict[int, Child]] = {}
        """Its process id -> life -> the daemon there."""
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._lives = itertools.count(1)

    async def join(
        self, name: str, entry: str, arguments: Any, members: Sequence[Member], log: Path | None = None
    ) -> list[Child]:
        """Have daemons join the shared process of this name; `Launcher.spawn` forks it if it does not live.

        Raises ProcessFailedError.
        """
        async with self._turns[name]:
            for _ in range(TRIES):
                process = self._processes.get(name) or await self._begin(name, entry, arguments, log)
                if children := await self._join(process, members):
                    return children
                await process.ended  # it has just died, and its death is about to be told
                await asyncio.sleep(0)
        raise ProcessFailedError(f"{name} died at start{where_logged(log)}")

    async def _begin(self, name: str, entry: str, arguments: Any, log: Path | None) -> Child:
        process = await self._launcher.spawn(name, entry, arguments, log=log, shared=True)
        self._processes[name], self._there[process.pid] = process, {}
        process.ended.add_done_callback(lambda _code: self._ended(process))
        return process

    async def _join(self, process: Child, members: Sequence[Member]) -> list[Child]:
        """Returns the daemons, or none when the process has died."""
        loop = asyncio.get_running_loop()
        joining = {next(self._lives): member for member in members}
        children = {
            life: Child(one.name, process.pid, one.log, loop.create_future(), life=life)
            for life, one in joining.items()
        }
        if process.alive:
            self._there[process.pid].update(children)
        told = [[life, None if one.log is None else str(one.log), one.table] for life, one in joining.items()]
        if process.alive and await self._launcher.pass_on(process.pid, "join", told):
            return list(children.values())
        for life in children:
            self._there.get(process.pid, {}).pop(life, None)
        return []

    async def end(self, child: Child) -> bool:
        """End one daemon of a shared process as SIGKILL does; False when it has ended already."""
        return child.alive and await self._launcher.pass_on(child.pid, "end", life=child.life)

    def _said(self, pid: int, said: dict[str, Any]) -> None:
        child = self._there.get(pid, {}).pop(said["life"], None)
        if child is not None:
            self._died(child, os.waitstatus_to_exitcode(said["status"]))

    def _ended(self, process: Child) -> None:
        """A shared process has died, and everybody in it."""
        if self._processes.get(process.name) is process:
            del self._processes[process.name]
        code = process.ended.result()
        words = "" if code in (0, -signal.SIGKILL) or process.log is None else last_line(process.log)
        for child in self._there.pop(process.pid, {}).values():
            child.words = words
            self._died(child, code)

    def _died(self, child: Child, code: int) -> None:
        child.ended.set_result(code)
        self._launcher.tell_of_death(child)
