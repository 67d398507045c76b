"""Hearing of a daemon that died though nobody had asked for it: one way for runs, the demonstration and measurements.

Owns how often one asks, and what is said of a death. What counts as one is `orchestrator.fabric.lifecycle`'s.
"""

import asyncio
from typing import Final, NoReturn

from orchestrator.fabric.readings import Death
from orchestrator.fabric.verbs import Verbs

CHECK_WALL_S: Final = 0.25


class DaemonDiedError(Exception):
    """Daemons died though nobody had asked for it, or the fabric as a whole has ended; the text says who and how."""


class DeathWatch:
    """Of one fabric, from now on."""

    def __init__(self, fabric: Verbs, broken: "asyncio.Future[str] | None" = None, known: int = 0) -> None:
        """`broken`: done, with the reason, when the fabric as a whole has come to an end; `known`: how many had died
        before."""
        self._fabric = fabric
        self._broken = broken
        self._known = known

    async def check(self) -> None:
        """Raises DaemonDiedError."""
        if self._broken is not None and self._broken.done():
            raise DaemonDiedError(self._broken.result())
        deaths = (await self._fabric.deaths())[self._known :]
        if deaths:
            raise DaemonDiedError("\n".join(map(obituary, deaths)))

    async def go_on(self) -> NoReturn:
        """Check again and again; until cancelled. Raises DaemonDiedError."""
        while True:
            await self.check()
            await asyncio.sleep(CHECK_WALL_S)


def obituary(death: Death) -> str:
    """Who died, how, and the last that it wrote."""
    return "\n  ".join([f"{death.node} at {death.at_ns} ns: {death.how}", *death.log])
