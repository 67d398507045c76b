"""What daemons are told of the lives of their nodes: the script, the windows that are told as a whole, the end.

Owns how far each process has been told. What there is to tell is `orchestrator.faults.table`'s; which life a process is
in, and who waits for it to have been told, is `orchestrator.fabric.lifecycle`'s.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from mrcfabric.units import NEVER, Instant
from orchestrator.fabric.daemons import Daemons
from orchestrator.faults.lives import Life
from orchestrator.faults.table import FaultTable, Stamped

COMMAND_WALL_S = 24 * 3600.0
"""A command waits for its instant, and is repeated to a daemon that does not answer, as long as the fabric runs."""
SCRIPT_COMMANDS = 64
"""Commands of a script that go in one datagram."""


class FaultDelivery:
    """Of all daemons of one fabric."""

    def __init__(self, daemons: Daemons, table: FaultTable) -> None:
        self._daemons = daemons
        self._table = table
        self._told: dict[str, int] = defaultdict(int)
        """How much of its life's script a process has been given."""
        self._ordered: dict[str, Instant] = defaultdict(lambda: NEVER)
        """When that process has been ordered to die."""
        self._windows: dict[str, dict[str, Any]] = defaultdict(dict)
        """Op -> the windows that it has been told of: when to hear nobody, when to be slow."""
        self._talking: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def begin(self, node: str, life: Life) -> tuple[Stamped, ...]:
        """The script that a process for this life is started with; its end it is told as well."""
        self._told[node] = len(life.script)
        self._ordered[node] = life.end_ns
        self._windows[node].clear()
        return tuple(life.script)

    async def catch_up(self, node: str, life: Callable[[], Life | None]) -> None:
        """Tell a node's process what it does not know yet, and return when it has answered, however long that takes.

        `life`: the one it is in, asked for when nobody else talks to it any more; None: it has no process, which learns
        everything when it is started. Raises what `Daemons.call` raises, when it refuses or ends.
        """
        async with self._talking[node]:
            now = life()
            if now is None:
                return
            news = now.script[self._told[node] :]
            self._told[node] = len(now.script)
            for start in range(0, len(news), SCRIPT_COMMANDS):
                part = [[one.at_ns, one.op, one.args] for one in news[start : start + SCRIPT_COMMANDS]]
                await self._call(node, "script", {"commands": part})
            for op, windows in self._table.told_whole(node).items():
                if windows != self._windows[node].get(op, []):
                    self._windows[node][op] = windows
                    await self._call(node, op, {"windows": windows})
            if now.end_ns != self._ordered[node]:
                self._ordered[node] = now.end_ns
                await self._call(node, "crash", {"never": True} if now.end_ns == NEVER else {"at_ns": now.end_ns})

    async def _call(self, node: str, op: str, args: dict[str, Any]) -> None:
        await self._daemons.call(node, op, args, COMMAND_WALL_S)
