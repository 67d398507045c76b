"""Runs the Clustermapper inside a run, over daemons and in virtual time alike: it looks while time stands still.

Owns when it looks next, and the change from one look to the next. `orchestrator.mapper.link_watch` draws the
conclusions; who has time in hand stops it at each look, and gives the orders.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.mapper.link_watch import LinkWatch, WatchSettings, entries_of
from orchestrator.scenario import plan


class Asked(Protocol):
    """What this module needs of a fabric in the hands of a run (`orchestrator.runs.backend.Backend`)."""

    @property
    def now_ns(self) -> Instant: ...

    async def ask(self, node: str, op: str, args: Mapping[str, Any] | None = None) -> Any: ...


class Findings(NamedTuple):
    """What the mapper holds, as far as users of a run care."""

    bad: tuple[str, ...]
    """Dead switches, then links."""
    avoided: tuple[str, ...]
    """Those of them that NICs are kept off."""
    kept: Mapping[str, str]
    """Bad ones that NICs go on using, and why."""


class RunMapping:
    """The Clustermapper of one run."""

    def __init__(self, topology: Topology, settings: WatchSettings, begin_ns: Instant) -> None:
        """It looks at `begin_ns` for the first time."""
        self.due_ns = begin_ns
        """The instant of its next look."""
        self._topology = topology
        self._watch = LinkWatch(topology, settings)

    async def look(self, fabric: Asked, heard: Collection[str]) -> tuple[Findings, list[plan.Order]]:
        """Judge all links at this instant: what it holds now, and the orders to NICs that follow from it.

        `heard`: the nodes that live and hear; a NIC that does not is asked nothing.
        """
        self.due_ns = fabric.now_ns + self._watch.settings.look_ns
        nics = dict(enumerate(self._topology.nic_names()))
        tables = {nic: await fabric.ask(name, "link_table") if name in heard else None for nic, name in nics.items()}
        found = self._watch.take(fabric.now_ns, tables)
        orders = [*self._watch.asleep(tables), *self._watch.questions()]
        if self._watch.settings.deny:
            concerned = [nic for nic in self._watch.concerned() if tables[nic] is not None]
            orders += self._watch.orders(
                {nic: entries_of(await fabric.ask(nics[nic], "denied_paths")) for nic in concerned}
            )
        denials = self._watch.plan
        findings = Findings(tuple(found.bad), tuple(denials.rules), dict(denials.kept))
        return findings, [plan.Order(one.node, one.op, one.args) for one in orders]
