"""What a fabric has counted since its launch, over all lives of all nodes, read from the clock page: nobody is asked.

Owns the sums over nodes, and the list of what died untold. What a row of the page says is `mrcfabric.tally`'s, what the
sums are called `orchestrator.measures.sums`'. A daemon that dies by its own hand has told everything before. One that
somebody else kills, or whose host is lost, leaves out what it counted in its last milliseconds of wall time.
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
    """Of one fabric."""

    def __init__(self, page: ClockPage, slot: Callable[[str], int], nodes: list[str]) -> None:
        """`slot`: of a node in the page; `nodes`: all."""
        self._page = page
        self._slots = {node: slot(node) for node in nodes}
        self.untold: list[Untold] = []
        """Lives that ended before they had told everything, the oldest first."""

    def rows(self) -> list[dict[str, int]]:
        """Of every node what it has counted in all its lives."""
        return [dict(zip(tally.NAMES, self._page.tally(slot), strict=True)) for slot in self._slots.values()]

    def totals(self) -> dict[str, int]:
        """What all nodes have counted together, in the words of `sums.totals`."""
        rows = self.rows()
        return {name: sum(row[name] for row in rows) for name in tally.TOTALS}

    def fidelity(self, time: Mapping[str, Any]) -> dict[str, Any]:
        """As `sums.fidelity`."""
        return sums.fidelity(({"fidelity": row} for row in self.rows()), time)

    def died(self, node: str, at_ns: Instant) -> Untold | None:
        """A life has ended at an instant: what it had not told yet, if anything."""
        told_ns = self._page.tally(self._slots[node])[0]
        if told_ns >= at_ns:
            return None
        self.untold.append(Untold(node, told_ns, at_ns))
        return self.untold[-1]


class Counted(Verbs):
    """The verbs of a fabric whose clock page is at hand that ask what it has counted."""

    time: Timekeeper
    tallies: Tallies

    async def fidelity(self) -> dict[str, Any]:
        """As `Verbs.fidelity`."""
        await asyncio.sleep(0)
        return self.tallies.fidelity(self.time.record())

    async def totals(self) -> dict[str, int]:
        """As `Verbs.totals`."""
        # Whoever asks in a loop leaves a turn to the agent, whose loop it is.
        await asyncio.sleep(0)
        return self.tallies.totals()

    async def untold(self) -> list[Untold]:
        """As `Verbs.untold`."""
        return list(self.tallies.untold)
