"""The agent's requests for `mrcfabric send`: move an operator's files across the fabric.

Owns who owns which transfer: it ends with the lease of its owner (`orchestrator.agent.faults`).
`orchestrator.agent.agent` serves the request; `orchestrator.apps.send` does the transfer.
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
    """The transfers through one fabric, at most one for each lease."""

    def __init__(self, fabric: LaunchedFabric, faults: FaultRequests) -> None:
        """`faults` knows the leases."""
        self._fabric = fabric
        self._faults = faults
        self._under_way: dict[str, asyncio.Task[dict[str, Any]]] = {}
        """Owner -> its transfer."""

    async def send(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send `file` `from` one NIC `to` another, for `owner`; returns the record when the transfer is over.

        `out`: where to write it (None: it is only hashed). Raises ConfigError, RefusedError, ProcessFailedError.
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
        """End the transfer of an owner that has gone."""
        if (task := self._under_way.get(owner)) is not None:
            await _end(task)


async def _end(task: asyncio.Task[dict[str, Any]]) -> None:
    task.cancel()
    await asyncio.wait([task])
