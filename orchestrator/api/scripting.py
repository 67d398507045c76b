"""What scripts can do with both kinds of fabric beyond `Verbs`: give it work, watch it, wait for a measure.

Owns these methods (`orchestrator.api.fabric` adds them to each kind). `watch` records; `work` makes programs and waits
for their end.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Unpack

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.naming import shown
from orchestrator.api import work
from orchestrator.api.watch import Bounds, Watch
from orchestrator.api.work import Work
from orchestrator.fabric import arguments
from orchestrator.fabric.verbs import WAIT_WALL_S, Verbs
from orchestrator.measures.judge import Finding


class Scripting(Verbs):
    """A mix-in for a kind of fabric."""

    @cached_property
    def works(self) -> list[Work]:
        """Every program that `start` has started, the latest last."""
        return []

    @cached_property
    def _one_at_a_time(self) -> asyncio.Lock:
        """Held while a program begins, so that two do not take the same number."""
        return asyncio.Lock()

    async def watch(self) -> Watch:
        """Record what happens from now on, for measures and conditions."""
        watch = Watch(self, await self.clock(), self.works)
        await watch.begin()
        return watch

    async def until(self, measure: str, *, within_s: float = WAIT_WALL_S, **bounds: Unpack[Bounds]) -> Finding:
        """Wait until a measure of what happens from now on is within bounds: `watch`, then `Watch.until`."""
        return await (await self.watch()).until(measure, within_s=within_s, **bounds)

    async def start(
        self,
        kind: str,
        *,
        ranks: str | int | Iterable[str] = "all",
        name: str | None = None,
        seed: str | None = None,
        figures: Mapping[str, Any] | None = None,
    ) -> Work:
        """Have NICs run a program; docs/SCENARIOS.md lists `kind` and `figures`.

        `ranks`: the NICs in the order of the ranks: `all`, a number (the first so many), or names and globs. Returns
        when every NIC has taken its part; the program begins soon after. Raises ConfigError, RefusedError.
        """
        nics = work.chosen(self.topology, ranks, self.find_nodes)
        given = arguments.table("figures", figures)
        for key, value in (("kind", kind), ("name", name), ("seed", seed)):
            if value is not None or key == "kind":
                arguments.text(key, value)
        if name is not None and (len(name) > work.NAME_CHARS_MAX or not name.isprintable()):
            raise ConfigError("name", f"{shown(name)} will not do", f"up to {work.NAME_CHARS_MAX} printable characters")
        if (await self.clock()).limit_ns is not None:
            raise RefusedError("fabric time is held: NICs make their memory and QPs while it goes on")
        async with self._one_at_a_time:
            program = await work.begin(self, kind, nics, figures=given, name=name, seed=seed)
        self.works.append(Work(self, program))
        return self.works[-1]
