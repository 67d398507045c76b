"""Daemons in processes that they share: each is a child of its own, which comes and ends alone, or with its process.

Owns which daemon has which seat in which process, and forks a shared process when its first daemon comes aboard.
`mrcfabric.company` is the process, `orchestrator.process.launcher` the way to it.
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

from orchestrator.process.launcher import Child, Launcher, ProcessFailedError, last_line

TRIES = 3
"""How often to begin with a new process when one dies before anybody is aboard."""


@dataclass(frozen=True, slots=True)
class Rider:
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
        self._grounds: dict[str, Child] = {}
        """Name of a shared process -> the process, while it lives."""
        self._aboard: dict[int, dict[int, Child]] = {}
        """Its process id -> seat -> the daemon there."""
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._seats = itertools.count(1)

    async def board(
        self, process: str, entry: str, arguments: Any, riders: Sequence[Rider], log: Path | None = None
    ) -> list[Child]:
        """Have daemons come aboard a shared process; it is forked, as `Launcher.spawn` does, when it does not live.

        Raises ProcessFailedError.
        """
        async with self._turns[process]:
            for _ in range(TRIES):
                ground = self._grounds.get(process) or await self._begin(process, entry, arguments, log)
                if children := await self._seat(ground, riders):
                    return children
                await ground.ended  # it has just died, and is about to be buried
                await asyncio.sleep(0)
        raise ProcessFailedError(f"{process} died at start" + (f"; its log: {log}" if log else ""))

    async def _begin(self, process: str, entry: str, arguments: Any, log: Path | None) -> Child:
        ground = await self._launcher.spawn(process, entry, arguments, log=log, company=True)
        self._grounds[process], self._aboard[ground.pid] = ground, {}
        ground.ended.add_done_callback(lambda _code: self._ended(ground))
        return ground

    async def _seat(self, ground: Child, riders: Sequence[Rider]) -> list[Child]:
        """Returns the daemons, or none when the process has died."""
        loop = asyncio.get_running_loop()
        seated = {next(self._seats): rider for rider in riders}
        children = {
            seat: Child(one.name, ground.pid, one.log, loop.create_future(), seat=seat) for seat, one in seated.items()
        }
        if ground.alive:
            self._aboard[ground.pid].update(children)
        told = [[seat, None if one.log is None else str(one.log), one.table] for seat, one in seated.items()]
        if ground.alive and await self._launcher.pass_on(ground.pid, "board", told):
            return list(children.values())
        for seat in children:
            self._aboard.get(ground.pid, {}).pop(seat, None)
        return []

    async def end(self, child: Child) -> bool:
        """End one daemon of a shared process as SIGKILL does; False when it has ended already."""
        return child.alive and await self._launcher.pass_on(child.pid, "end", seat=child.seat)

    def _said(self, pid: int, said: dict[str, Any]) -> None:
        child = self._aboard.get(pid, {}).pop(said["seat"], None)
        if child is not None:
            self._bury(child, os.waitstatus_to_exitcode(said["status"]))

    def _ended(self, ground: Child) -> None:
        """A shared process has died, and everybody in it."""
        if self._grounds.get(ground.name) is ground:
            del self._grounds[ground.name]
        code = ground.ended.result()
        words = "" if code in (0, -signal.SIGKILL) or ground.log is None else last_line(ground.log)
        for child in self._aboard.pop(ground.pid, {}).values():
            child.words = words
            self._bury(child, code)

    def _bury(self, child: Child, code: int) -> None:
        child.ended.set_result(code)
        self._launcher.tell_of_death(child)
