"""Runs checks of a running fabric's links and watches over them: one at a time, and none outlives the fabric.

Owns what is under way and what excludes what. `orchestrator.mapper.mapping` probes the links;
`orchestrator.mapper.link_watch` judges the probes.
"""

import asyncio
from typing import Any

from mrcfabric.errors import RefusedError
from orchestrator.fabric.journal import Journal
from orchestrator.mapper.link_verdicts import LinkMap
from orchestrator.mapper.link_watch import WatchSettings
from orchestrator.mapper.mapping import FabricLike, LinkMapping, check_links


class LinkTesting:
    """The tests of one fabric's links."""

    def __init__(self, fabric: FabricLike, journal: Journal) -> None:
        self.mapping: LinkMapping | None = None
        """The watch over the links, while there is one."""
        self._fabric = fabric
        self._journal = journal
        self._mapping_task: asyncio.Task[None] | None = None
        self._check_task: asyncio.Task[LinkMap] | None = None

    async def check(self, **figures: Any) -> LinkMap:
        """Probe every link once and judge; the figures are those of `orchestrator.mapper.mapping.check_links`.

        Raises RefusedError while a watch runs, whose map can be shown instead. Also while another check runs, because
        both would set the NICs' probes, and when `stop` ends the check.
        """
        if self.mapping is not None:
            raise RefusedError("a watch over the links is on: it shows its map; `mapper --stop` ends it")
        self._refuse_while_checking()
        task = self._check_task = asyncio.create_task(check_links(self._fabric, **figures))
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            self._check_task = None
        if task.cancelled():
            raise RefusedError("the check of the links was ended")
        return task.result()

    @property
    def checking(self) -> bool:
        """Whether a check of the links is under way."""
        return self._check_task is not None

    def _refuse_while_checking(self) -> None:
        if self.checking:
            raise RefusedError("a check of the links is under way: wait for it; `mapper --stop` ends it")

    async def watch(self, period_ns: int | None = None, *, deny: bool = False) -> LinkMapping:
        """Have all NICs probe their links from now on, and fill their deny lists if `deny` is set.

        The journal notes changes of what is accused. Raises ConfigError; RefusedError when a watch already runs.
        """
        if self.mapping is not None:
            raise RefusedError("a watch over the links is on already; `mapper --stop` ends it")
        self._refuse_while_checking()
        accused: list[list[str]] = [[]]

        def on_look(found: LinkMap) -> None:
            if found.bad != accused[0]:
                accused[0] = found.bad
                self._journal.note("links", found.at_ns, bad=", ".join(found.bad) or "none")

        settings = WatchSettings.of(self._fabric.topology, period_ns, deny=deny)
        self.mapping = LinkMapping(self._fabric, settings, on_look)
        await self.mapping.look()
        self._mapping_task = asyncio.get_running_loop().create_task(self.mapping.serve())
        return self.mapping

    async def stop(self) -> LinkMap | None:
        """End the watch with its probes and denials, or a check. Returns the watch's last map, None without a watch."""
        if self._check_task is not None:
            self._check_task.cancel()
            await asyncio.wait([self._check_task])
        mapping, task = self.mapping, self._mapping_task
        if mapping is None or task is None:
            return None
        task.cancel()
        await asyncio.wait([task])
        await mapping.end()
        self.mapping = self._mapping_task = None
        return mapping.watch.latest

    def close(self) -> None:
        """Cancel everything: the fabric ends, and the probes with it."""
        for probing in (self._mapping_task, self._check_task):
            if probing is not None:
                probing.cancel()
