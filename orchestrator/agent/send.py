"""The agent's requests for `mrcfabric send`: files of the operator's cross the fabric.

Owns whose transfer is whose: one ends with the lease of whoever asked for it (`orchestrator.agent.faults`).
`orchestrator.agent.agent` serves the request; what a transfer does is `orchestrator.apps.send`'s.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from mrcfabric.errors import RefusedError
from orchestrator.agent.faults import FaultRequests
from orchestrator.apps.send import Transfer, transfer
from orchestrator.client import bodies
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.workers.group import WorkerFailedError


class SendRequests:
    """Transfers through one fabric, at most one for each lease."""

    def __init__(self, fabric: LaunchedFabric, faults: FaultRequests) -> None:
        """`faults` knows who holds a lease."""
        self._fabric = fabric
        self._faults = faults
        self._under_way: dict[str, asyncio.Task[dict[str, Any]]] = {}
        """By owner."""

    async def send(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`file`, `from`, `to`, `out` (none: it is only hashed), `owner`; the record of the transfer, when it is over.

        Raises ConfigError, RefusedError, ProcessFailedError.
        """
        what, owner = Transfer.of(body), bodies.text(body, "owner")
        self._faults.leases.require(owner, "the transfer would go on")
        if owner in self._under_way:
            raise RefusedError(f"{owner} sends already")
        self._under_way[owner] = task = asyncio.create_task(transfer(self._fabric, what))
        try:
            await asyncio.wait([task])
        finally:
            del self._under_way[owner]
            await _end(task)
        if task.cancelled():
            raise RefusedError(f"the lease of {owner} ended")
        try:
            return task.result()
        except WorkerFailedError as error:
            raise RefusedError(str(error)) from None

    async def end_of(self, owner: str) -> None:
        """An owner has gone: nothing of its transfer stays."""
        if (task := self._under_way.get(owner)) is not None:
            await _end(task)


async def _end(task: asyncio.Task[dict[str, Any]]) -> None:
    task.cancel()
    await asyncio.wait([task])
