"""Tells daemons what faults do to their nodes: scripts of commands, lists of windows, and when to die.

Owns how much each process has been told. `orchestrator.faults.table` knows what there is to tell.
`orchestrator.fabric.lifecycle` knows which life a process is in, and waits until the process has been told.
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
"""How long a command may take: a daemon answers at the command's instant, and we repeat it while the fabric runs."""
SCRIPT_COMMANDS = 64
"""How many commands of a script go into one datagram."""


class FaultDelivery:
    """Tells all daemons of one fabric."""

    def __init__(self, daemons: Daemons, table: FaultTable) -> None:
        self._daemons = daemons
        self._table = table
        self._told: dict[str, int] = defaultdict(int)
        """Node -> how many commands of its life's script its process has been given."""
        self._ordered: dict[str, Instant] = defaultdict(lambda: NEVER)
        """Node -> when its process has been ordered to die."""
        self._windows: dict[str, dict[str, Any]] = defaultdict(dict)
        """Node -> op -> the windows that its process has been told: when to hear no other host, when to be slow."""
        self._talking: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def begin(self, node: str, life: Life) -> tuple[Stamped, ...]:
        """Note that a process starts with a life's script and end, and return that script."""
        self._told[node] = len(life.script)
        self._ordered[node] = life.end_ns
        self._windows[node].clear()
        return tuple(life.script)

    async def catch_up(self, node: str, life: Callable[[], Life | None]) -> None:
        """Tell a node's process what it does not know yet. Returns when it has answered, however long that takes.

        `life` returns the life that the process is in. It is called once no other call talks to the process. None means
        that there is no process; the next one gets everything at its start. Raises what `Daemons.call` raises when
        the daemon refuses or ends.
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
