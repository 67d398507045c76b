"""The verbs of scripts that need more than a fabric: give it work, watch it, wait for a measure.

Owns those verbs, for both kinds of fabric (`orchestrator.api.fabric`). `watch` has what is
recorded, `work` has what a program is and how its end is awaited.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Unpack

from mrcfabric.errors import RefusedError
from orchestrator.api import work
from orchestrator.api.watch import Bounds, Watch
from orchestrator.api.work import Work
from orchestrator.fabric.verbs import WAIT_WALL_S, Verbs
from orchestrator.measures.judge import Finding


class Scripting(Verbs):
    """Mixed into a kind of fabric."""

    @cached_property
    def works(self) -> list[Work]:
        """Every program that was started by `start`, the latest last."""
        return []

    async def watch(self) -> Watch:
        """Begin to record what happens from now on, for measures and conditions."""
        watch = Watch(self, await self.clock(), self.works)
        await watch.begin()
        return watch

    async def until(self, measure: str, *, within_s: float = WAIT_WALL_S, **bounds: Unpack[Bounds]) -> Finding:
        """Wait until a measure of what happens from now on lies within bounds: `watch` and `Watch.until` in one."""
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
        """Have NICs run a program: `kind` and `figures` are those of docs/SCENARIOS.md.

        `ranks`: the NICs in the order of the ranks: `all`, the first so many, or names and globs. Returns when every
        NIC has taken its part; it begins soon after. Raises ConfigError, RefusedError.
        """
        nics = work.chosen(self.topology, ranks, self.find_nodes)
        if (await self.clock()).limit_ns is not None:
            raise RefusedError("fabric time is held: NICs make their memory and QPs while it goes on")
        program = await work.make(self, kind, name, nics, figures or {}, seed)
        await self.load(program)
        self.works.append(Work(self, program))
        return self.works[-1]
