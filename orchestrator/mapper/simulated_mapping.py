"""Runs the Clustermapper over a fabric in virtual time: the same watch as over daemons, exact to the nanosecond.

Owns when it looks. A look reads the cores' tables at exactly its instant; its orders are carried out one nanosecond
later.
"""

from collections.abc import Callable
from typing import Any

from mrcfabric.units import Instant
from nicd.core.nic import Nic
from orchestrator.mapper.link_verdicts import LinkMap
from orchestrator.mapper.link_watch import LinkWatch, WatchSettings, entries_of
from orchestrator.sim.fabric import SimulatedFabric


class SimulatedMapping:
    """A watch over a simulated fabric. Call `run` of this object in place of the fabric's own."""

    def __init__(
        self,
        fabric: SimulatedFabric,
        settings: WatchSettings | None = None,
        on_look: Callable[[LinkMap], None] = lambda _map: None,
    ) -> None:
        """`on_look` is called with every map."""
        self.fabric = fabric
        self.watch = LinkWatch(fabric.topology, settings or WatchSettings.of(fabric.topology))
        self._on_look = on_look
        self._look()

    def run(self, until: Instant) -> None:
        """Let everything up to and including `until` happen, with a look every `look_ns`."""
        step_ns = self.watch.settings.look_ns
        while (next_ns := (self.fabric.now_ns // step_ns + 1) * step_ns) <= until:
            self.fabric.run(next_ns)
            self._look()
        self.fabric.run(until)

    def _look(self) -> None:
        tables = {nic: self._table(name) for nic, name in enumerate(self.fabric.topology.nic_names())}
        self._on_look(self.watch.take(self.fabric.now_ns, tables))
        orders = [*self.watch.asleep(tables), *self.watch.questions()]
        if self.watch.settings.deny:
            present = {nic: self._denied(nic) for nic in self.watch.concerned() if tables[nic] is not None}
            orders += self.watch.orders(present)
        for order in (one for one in orders if self.fabric.hears(one.node)):
            self.fabric.command(order.node, order.op, order.args)

    def _nic(self, name: str) -> Nic | None:
        if not self.fabric.hears(name):
            return None
        core = self.fabric.simulator.node(name)
        assert isinstance(core, Nic)
        return core

    def _table(self, name: str) -> dict[str, Any] | None:
        core = self._nic(name)
        return None if core is None else core.link_table()

    def _denied(self, nic: int) -> list[tuple[int, int | None, int | None]]:
        core = self._nic(self.fabric.topology.node_name(nic))
        return [] if core is None else entries_of(core.denied_paths())
