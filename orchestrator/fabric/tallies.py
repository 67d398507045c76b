"""What a fabric has counted since its launch, over all lives of all nodes. Reads the clock page and asks no daemon.

Owns the sums over nodes and the list of lives whose last counts are missing. `mrcfabric.tally` says what a row of the
page holds; `orchestrator.measures.sums` names the sums. A daemon that dies in a scripted crash writes all its counts to
the page first. A daemon that somebody else kills, or whose host is lost, leaves out what it counted in its last
milliseconds of wall time.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from mrcfabric import tally
from mrcfabric.clock import ClockPage
from mrcfabric.units import Instant
from orchestrator.fabric.readings import Untold
from orchestrator.fabric.verbs import Verbs
from orchestrator.hosts.clock.timekeeper import Timekeeper
from orchestrator.measures import sums


class Tallies:
    """The tallies of one fabric."""

    def __init__(self, page: ClockPage, slot: Callable[[str], int], nodes: list[str]) -> None:
        """`slot`: node -> its slot in the page; `nodes`: all nodes."""
        self._page = page
        self._slots = {node: slot(node) for node in nodes}
        self.untold: list[Untold] = []
        """Lives that ended before they reported all their counts, oldest first."""

    def rows(self) -> list[dict[str, int]]:
        """For each node, what it has counted in all its lives."""
        return [dict(zip(tally.NAMES, self._page.tally(slot), strict=True)) for slot in self._slots.values()]

    def totals(self) -> dict[str, int]:
        """What all nodes together have counted, under the names of `sums.totals`."""
        rows = self.rows()
        return {name: sum(row[name] for row in rows) for name in tally.TOTALS}

    def fidelity(self, time: Mapping[str, Any]) -> dict[str, Any]:
        """As `sums.fidelity`."""
        return sums.fidelity(({"fidelity": row} for row in self.rows()), time)

    def died(self, node: str, at_ns: Instant) -> Untold | None:
        """Note that a node's life ended at `at_ns`; returns what it had not reported by then, None: nothing."""
        told_ns = self._page.tally(self._slots[node])[0]
        if told_ns >= at_ns:
            return None
        self.untold.append(Untold(node, told_ns, at_ns))
        return self.untold[-1]


class Counted(Verbs):
    """Methods that read tallies, for a fabric whose clock page is in this process."""

    time: Timekeeper
    tallies: Tallies

    async def fidelity(self) -> dict[str, Any]:
        """As `Verbs.fidelity`."""
        await asyncio.sleep(0)
        return self.tallies.fidelity(self.time.record())

    async def totals(self) -> dict[str, int]:
        """As `Verbs.totals`."""
        # Yield once: a caller that asks in a loop must not starve the agent, which runs in the same event loop.
        await asyncio.sleep(0)
        return self.tallies.totals()

    async def untold(self) -> list[Untold]:
        """As `Verbs.untold`."""
        return list(self.tallies.untold)
