"""Runs the Clustermapper over running daemons: a check of all links, or a watch that goes on and fills deny lists.

Owns the requests for tables to every NIC, the orders to them, and the wall time between two looks.
`orchestrator.mapper.link_watch` draws the conclusions. `orchestrator.mapper.simulated_mapping` does the same in virtual
time.

A watch keeps the fabric awake, because its NICs probe all the time. A check ends with its last probe.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.core.mrc.deny_list import Entry
from orchestrator.mapper.link_verdicts import LinkMap
from orchestrator.mapper.link_watch import FIND_LOSS, LinkWatch, Order, WatchSettings, entries_of, rounds_to_find
from orchestrator.process.launcher import ProcessFailedError

POLL_WALL_S = 0.05
CHECK_WALL_S = 600.0
"""A check that has not ended by then is given up."""
ROUNDS_MAX = 1_000_000

Tables: TypeAlias = dict[int, dict[str, Any] | None]


class FabricLike(Protocol):
    """What this module needs of `orchestrator.fabric.Fabric`."""

    topology: Topology

    def now_ns(self) -> Instant: ...

    async def call(self, node: str, op: str, args: Mapping[str, Any] | None = None) -> Any: ...

    async def command(self, node: str, op: str, args: Mapping[str, Any]) -> Any: ...


class LinkMapping:
    """One watch over one running fabric.

    Run `serve` as a task, and `end` once it is cancelled. `check_links` uses it, too.
    """

    def __init__(
        self, fabric: FabricLike, settings: WatchSettings, on_look: Callable[[LinkMap], None] = lambda _map: None
    ) -> None:
        """`on_look` is called with every map."""
        self.fabric = fabric
        self._on_look = on_look
        self.watch = LinkWatch(fabric.topology, settings)
        self.carried_out = 0
        """How many orders NICs have carried out."""
        self.refused = 0
        """How many orders NICs have not carried out; the next look orders again what is still wanted."""

    async def serve(self) -> None:
        """Look repeatedly until cancelled."""
        due_ns: Instant = 0
        while True:
            if self.fabric.now_ns() >= due_ns:
                await self.look()
                due_ns = self.fabric.now_ns() + self.watch.settings.look_ns
            await asyncio.sleep(POLL_WALL_S)

    async def look(self) -> LinkMap:
        """Take one look: get the tables, judge, and send orders."""
        tables = await self.tables()
        found = self.watch.take(self.fabric.now_ns(), tables)
        self._on_look(found)
        orders = [*self.watch.asleep(tables), *self.watch.questions()]
        if self.watch.settings.deny:
            orders += await self._denials([nic for nic in self.watch.concerned() if tables[nic] is not None])
        await self.send(orders)
        return found

    async def end(self) -> None:
        """Stop the watch's probes, and lift the watch's denials."""
        orders = self.watch.lift_all()
        if self.watch.settings.deny:
            orders += await self._denials(self.watch.concerned())
        await self.send(orders)

    async def tables(self) -> Tables:
        """Ask all NICs for their link tables; None for one that does not answer."""
        everybody = range(self.fabric.topology.nics)
        answers = await asyncio.gather(*(self._ask(nic, "link_table") for nic in everybody))
        return dict(zip(everybody, answers, strict=True))

    async def _denials(self, nics: Sequence[int]) -> list[Order]:
        answers = await asyncio.gather(*(self._ask(nic, "denied_paths") for nic in nics))
        present: dict[int, list[Entry]] = {
            nic: entries_of(rows) for nic, rows in zip(nics, answers, strict=True) if rows is not None
        }
        return self.watch.orders(present)

    async def _ask(self, nic: int, op: str) -> Any:
        try:
            return await self.fabric.call(self.fabric.topology.node_name(nic), op)
        except (RefusedError, NoAnswerError, ProcessFailedError):
            return None

    async def send(self, orders: Sequence[Order]) -> None:
        """Send orders: to each NIC in order, to all NICs at the same time."""
        of_nic: dict[int, list[Order]] = {}
        for order in orders:
            of_nic.setdefault(order.nic, []).append(order)
        await asyncio.gather(*(self._send_to_one(its) for its in of_nic.values()))

    async def _send_to_one(self, orders: Sequence[Order]) -> None:
        for order in orders:
            try:
                await self.fabric.command(order.node, order.op, order.args)
                self.carried_out += 1
            except (RefusedError, NoAnswerError, ProcessFailedError):
                self.refused += 1


async def check_links(
    fabric: FabricLike,
    *,
    rounds: int | None = None,
    period_ns: int | None = None,
    loss: float = FIND_LOSS,
    wall_s: float = CHECK_WALL_S,
) -> LinkMap:
    """Probe every link `rounds` times and judge once: the check before a job. It needs no job, and changes nothing.

    `rounds` None: as many as find a link that loses `loss` of the packets in each direction with a chance of 99 %.
    Raises ConfigError for figures that make no sense, NoAnswerError when the probes have not come home within `wall_s`.
    NICs that probe by themselves go on with that afterwards.
    """
    settings = check_settings(fabric.topology, rounds, period_ns, loss)
    mapping = LinkMapping(fabric, settings)
    before = await mapping.tables()
    mapping.watch.take(fabric.now_ns(), before)
    number = settings.mapper.window_ns // settings.period_ns
    orders = [
        Order(nic, "probe_links", {"period_ns": settings.period_ns, "rounds": number})
        for nic, table in before.items()
        if table is not None
    ]
    try:
        # Inside the try: the check may be ended while the NICs are being told, and their probes must be set back.
        await mapping.send(orders)
        async with asyncio.timeout(wall_s):
            found = mapping.watch.take(fabric.now_ns(), await _all_home(mapping))
            # Asking takes longer than a short check's window, so the probes counted in it must not be judged again.
            while questions := mapping.watch.questions():
                await mapping.send(questions)
                found = mapping.watch.hear(await _all_home(mapping))
    except TimeoutError:
        raise NoAnswerError(f"the probes have not come home after {wall_s:g} s") from None
    finally:
        periods = {nic: table["period_ns"] for nic, table in before.items() if table is not None}
        await mapping.send([Order(nic, "probe_links", {"period_ns": period}) for nic, period in periods.items()])
    return found


def check_settings(
    topology: Topology, rounds: int | None = None, period_ns: int | None = None, loss: float = FIND_LOSS
) -> WatchSettings:
    """The figures of a check: its window covers all of it, and its verdicts need no confirmation.

    Raises ConfigError.
    """
    if not 0 < loss < 1:
        raise ConfigError("loss", f"{loss} is no share", "between 0 and 1, as 0.01")
    number = rounds_to_find(topology, loss) if rounds is None else rounds
    if not 1 <= number <= ROUNDS_MAX:
        raise ConfigError("rounds", f"{number} will not do", f"1 to {ROUNDS_MAX}")
    settings = WatchSettings.of(topology, period_ns)
    mapper = replace(settings.mapper, window_ns=number * settings.period_ns, confirm_ns=0)
    return replace(settings, mapper=mapper)


async def _all_home(mapping: LinkMapping) -> Tables:
    """Wait until no NIC sends or waits for probes any more; returns the tables."""
    while True:
        tables = await mapping.tables()
        pending = (table["period_ns"] or table["waiting"] or table["loops_left"] for table in tables.values() if table)
        if not any(pending):
            return tables
        await asyncio.sleep(POLL_WALL_S)
