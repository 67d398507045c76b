"""Life and death of the daemons of a running fabric: tells each its script, starts it and lets it die when it has to.

Owns which process a node has for which of its lives, and keeps that in line with the table of faults
(`orchestrator.faults.table`): it sends scripts to daemons ahead of time, tells a daemon when to die, and holds the
clock page for a node that is to return. `fault_injector` puts faults into the table. `daemons` starts and
asks processes.

A death that nobody asked for becomes a fault of its own: it is listed, and healing it brings the node back.
"""

import asyncio
import errno
import itertools
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from mrcfabric.clock import restart_horizon
from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.fabric.daemons import Daemons, start_failure
from orchestrator.fabric.fault_delivery import COMMAND_WALL_S, FaultDelivery
from orchestrator.fabric.host_lifecycle import HostLifecycle, Shares
from orchestrator.fabric.journal import Journal
from orchestrator.fabric.tallies import Tallies
from orchestrator.faults.checks import packet_ns
from orchestrator.faults.fault import TITLE_CHARS_MAX, once
from orchestrator.faults.host_map import HostMap
from orchestrator.faults.lives import Life
from orchestrator.faults.table import FaultTable, Stamped
from orchestrator.hosts.clock.timekeeper import Timekeeper
from orchestrator.process.background import Background
from orchestrator.process.launcher import Child, ProcessFailedError
from orchestrator.process.remedies import memory_kills, remedy

READY_POLL_S = 0.004

T = TypeVar("T")
_TROUBLES = (RefusedError, NoAnswerError, ProcessFailedError, ConfigError)


class Lifecycle:
    """Lives, deaths and returns of the nodes of one fabric."""

    def __init__(
        self,
        topology: Topology,
        table: FaultTable,
        host_map: HostMap,
        shares: Shares,
        daemons: Daemons,
        time: Timekeeper,
        tallies: Tallies,
        journal: Journal,
    ) -> None:
        self.topology = topology
        self._table = table
        self.unexpected: list[str] = []
        """Nodes that ended although nobody asked for it, and how each ended."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the process of a node that returns is ready."""
        self._daemons = daemons
        self._time = time
        self._tallies = tallies
        self._journal = journal
        self._living = {node: self._table.life(node, 0) for node in daemons.members}
        """Node -> the life for which its latest process was started."""
        self._died: dict[str, Instant] = defaultdict(lambda: -1)
        """Node -> when it last died. The life it is in, or gets next, is the table's first life after that."""
        self._births: dict[str, asyncio.Task[None]] = {}
        self._ahead: dict[str, Life] = {}
        """Node -> the life for which its process is ready, and which has not begun: it may still be called off."""
        self._superseded: set[str] = set()
        self._death_faults: dict[str, str] = {}
        """Node that died although nobody asked for it -> the id of the fault that lists its death."""
        self._memory_kills = memory_kills()
        """Before the launch."""
        self._turning: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._deaths = itertools.count(1)
        self._delivery = FaultDelivery(daemons, self._table)
        self._hosts = HostLifecycle(host_map, daemons.layout.sites.number, self._table, shares, self)
        time.on_look = self.note_returns
        self._background = Background(_TROUBLES, self._note_trouble)
        self._changes = Background(_TROUBLES, lambda _about, _error: None)  # who asked for one hears of its errors

    # In line with the table.

    async def whole(self, change: Coroutine[Any, Any, T]) -> T:
        """Carry a change of the table out to its end, also when who asked for it is cancelled meanwhile.

        A process that has been ended for a life that was called off must be followed by the next one.
        """
        return await asyncio.shield(self._changes.start(change))

    async def bring_in_line(self, nodes: Sequence[str]) -> None:
        """Make these nodes live, die and know what the table says now. Returns when all of them have been told."""
        self._hosts.look()
        try:
            await asyncio.gather(*(self._concern(node) for node in nodes))
        finally:
            # Only now, because this may wake a sleeping fabric: its nodes must have been told before.
            self._time.await_instant(self._table.last_edge_ns())

    def died_unasked(self, nodes: Iterable[str]) -> dict[str, str]:
        """Those of these nodes that died although nobody asked for it, each with the fault that lists its death."""
        deaths = {node: self._death_faults.get(node, "") for node in nodes if not self._runs(node)}
        return {node: fault_id for node, fault_id in deaths.items() if self._table.get(fault_id)}

    def begin_again(self, nodes: Iterable[str]) -> Instant | None:
        """Start nodes that are to return, and that no other fault keeps down.

        Returns the instant at which the last of them begins to live; None when none does.
        """
        lives = {node: life for node in nodes if (life := self._wanted(node)) is not None}
        for node, life in lives.items():
            self._begin(node, life)
        return max((life.start_ns for life in lives.values()), default=None)

    async def _concern(self, node: str) -> None:
        """Bring a node's process in line with the table: its life, its end and what it has been told."""
        async with self._turning[node]:  # a second caller waits until the first has replaced the process
            if not self._runs(node):
                self._begin_next(node)
            elif self._wanted(node) is not self._living[node]:
                await self._supersede(node)
        await self._tell(node)

    # What daemons are told.

    async def schedule(self, commands: Iterable[Stamped]) -> None:
        """Send commands and return when the daemons have them; the journal notes a refusal.

        A daemon answers a command only when it has carried it out. But it answers `status` in the order of asking, so
        an answer to `status` shows that it has every command sent before.
        """
        reachable = [command for command in commands if self._daemons.members[command.node].alive]
        for command in reachable:
            self._background.start(self._send(command), command.node)
        await asyncio.sleep(0)
        asked = {command.node for command in reachable}
        await asyncio.gather(*(self._daemons.call(node, "status") for node in asked))

    async def _send(self, command: Stamped) -> Any:
        args = {"op": command.op, "args": command.args, "at_ns": command.at_ns}
        return await self._daemons.call(command.node, "command", args, COMMAND_WALL_S)

    async def _tell(self, node: str) -> None:
        """Tell a process the rest of its life's script, its windows and its end. A dead node learns them at its return.

        Raises NoAnswerError when the process does not answer in time; it is still told as soon as it answers.
        """
        birth = self._births.get(node)
        if birth is not None and birth is not asyncio.current_task():
            if self._hosts.waits(node, self._living[node].start_ns):
                return
            await asyncio.wait([birth])
            if not birth.cancelled() and (error := birth.exception()) is not None:
                raise error
        telling = self._background.start(self._catch_up(node), node)
        if why := await self._daemons.give_up_on(node, telling):
            raise NoAnswerError(f"{node} {why}; it is told as soon as it does")
        if (trouble := telling.result()) is not None:
            raise trouble

    async def _catch_up(self, node: str) -> Exception | None:
        """Tell a process what it does not know yet, however long that takes; the error if a living one refuses."""
        try:
            await self._delivery.catch_up(node, lambda: self._living[node] if self._runs(node) else None)
        except _TROUBLES as error:
            # A node that died before it was told gets everything when it is started again.
            self._note_trouble(node, error)
            return error if self._daemons.members[node].alive else None
        return None

    def _note_trouble(self, node: str, error: Exception) -> None:
        if self._daemons.members[node].alive:
            self._journal.note("refused", self._time.now_ns(), node=node, why=str(error))

    # Deaths and returns.

    def _runs(self, node: str) -> bool:
        """Whether the node has a process, or one is being started."""
        return self._daemons.members[node].alive or node in self._births

    def _wanted(self, node: str) -> Life | None:
        """The life that a node is in, or is to have next.

        Does not ask the clock: time may pass the start of a life while the process for it is still being started.
        """
        return self._table.next_life(node, self._died[node])

    async def _supersede(self, node: str) -> None:
        """End a process that waits for a life that was called off, and start the life that the table has instead."""
        life = self._wanted(node)
        if life is not None:
            self._hold(node, 0, life.start_ns)  # first of all, because time goes on while we wait below
        if node in self._births and self._hosts.waits(node, self._living[node].start_ns):
            self._births.pop(node).cancel()
        elif node in self._births:
            await asyncio.wait([self._births[node]])
        self._ahead.pop(node, None)
        if self._daemons.members[node].alive:
            self._superseded.add(node)
            await self._end_process(node)
        self._begin_next(node)

    async def _end_process(self, node: str) -> None:
        child = self._daemons.members[node].child
        if child is not None and child.alive:
            await self._daemons.end(child)

    def _begin_next(self, node: str, died_ns: Instant = 0) -> None:
        """Start the next life of a node that has no process, or let the fabric go on without the node.

        `died_ns`: the instant at which its neighbours still wait for it; 0 when they do not wait.
        """
        slot = self._daemons.layout.slot(node)
        life = self._wanted(node)
        if life is None or life is self._living[node]:
            self._time.bury(slot)
            return
        self._begin(node, life, died_ns)

    def _begin(self, node: str, life: Life, died_ns: Instant = 0) -> None:
        self._hold(node, died_ns, life.start_ns)
        self._living[node] = life
        self._time.wake()
        self._births[node] = self._background.start(self._start_life(node, life), node)

    def _hold(self, node: str, died_ns: Instant, start_ns: Instant) -> None:
        horizon_ns = restart_horizon(died_ns, start_ns, self.topology.link_delay_ns_max, packet_ns(self.topology))
        self._time.hold_for(self._daemons.layout.slot(node), horizon_ns)

    def died(self, child: Child) -> None:
        """Handle the end of a process: the fabric goes on without its nodes, or waits for those that return."""
        for member in self._daemons.members.values():
            if member.child is child:
                self._bury(member.node, child)
        self._hosts.look()

    def _bury(self, node: str, child: Child) -> None:
        if node in self._superseded or node in self._births:
            self._superseded.discard(node)
            return  # `_supersede`, `recall` or `_start_life` continues from here
        self.note_returns()
        self._ahead.pop(node, None)
        slot = self._daemons.layout.slot(node)
        died_ns = self._time.page.horizon(slot) if self._time.is_alive(slot) else self._time.now_ns()
        how = child.how_it_ended()
        # In a scripted crash a daemon advances to exactly the end of its life, and then kills itself.
        planned = child.asked_for or self._living[node].end_ns == died_ns
        if not planned and how == "SIGKILL" and self._daemons.pid_here(node) and memory_kills() > self._memory_kills:
            how += f"; the kernel has killed processes for want of memory ({remedy(errno.ENOMEM)})"
        self._died[node] = died_ns
        untold = self._tallies.died(node, died_ns)
        lacks = {} if untold is None else {"counted_until_ns": untold.from_ns}
        self._journal.note("died", died_ns, node=node, how=how, planned=planned, **lacks)
        if planned:
            self._begin_next(node, died_ns)
        else:
            self._time.bury(slot)
            self._list_death(node, died_ns, f"{node}: {how}", how)

    def _list_death(self, node: str, died_ns: Instant, line: str, how: str) -> None:
        """Add a fault to the table for a death that nobody asked for."""
        self.unexpected.append(line)
        kind = "nic_crash" if self.topology.parse_node(node).tier == "nic" else "switch_crash"
        name = next(name for number in self._deaths if self._table.get(name := f"death-{number}") is None)
        fault = once(kind, node, at_ns=died_ns, fault_id=name, title=f"{node} died: {how}"[:TITLE_CHARS_MAX])
        self._death_faults[node] = fault.id
        nodes = self._table.add(fault, self._time.front_ns(), seen_ns=self._time.soon_ns())
        for one in nodes:
            if one != node:
                self._background.start(self._tell(one), one)
        self._time.await_instant(self._table.last_edge_ns())

    async def _start_life(self, node: str, life: Life) -> None:
        """Start the next incarnation; the clock page holds the fabric until it has bound its sockets."""
        try:
            async with self._hosts.birth(node, life.start_ns):
                await self._deliver(node, life)
        except _TROUBLES as error:
            if not self._has_lived_out(node, life):
                # A process that is ready after it was given up would be a node that lives while it is listed as dead.
                await self._end_process(node)
            if self._wanted(node) is life and not self._has_lived_out(node, life):
                self._lose(node, life.start_ns, str(error))
                raise
        self._births.pop(node, None)
        if self._wanted(node) is not life:
            return  # it was called off meanwhile: `_supersede` continues from here
        self._ahead[node] = life
        self.note_returns()
        member = self._daemons.members[node]
        if member.child is not None and not member.child.alive:
            self._bury(node, member.child)  # `died` skipped this end: the birth was under way
        self.on_change()
        await self._tell(node)

    def note_returns(self) -> None:
        """Note which nodes have returned: those whose process is ready and whose life has begun.

        A process waits for its life, which may be called off or moved until then.
        """
        if self._ahead:
            front_ns = self._time.front_ns()
            for node in [node for node, life in self._ahead.items() if life.start_ns <= front_ns]:
                at_ns, incarnation = self._ahead.pop(node).start_ns, self._daemons.members[node].incarnation
                self._journal.note("returned", at_ns, node=node, incarnation=incarnation)

    async def _deliver(self, node: str, life: Life) -> None:
        """Start a daemon for this life as it stands now, and wait until it answers, or until the life is called off.

        `_supersede` then holds the clock page for another life, so that this daemon never counts as ready.
        """
        script = self._delivery.begin(node, life)
        child = await self._daemons.restart(node, life.start_ns, script, life.end_ns)
        slot, patience = self._daemons.layout.slot(node), self._daemons.patience()
        while child.alive and self._wanted(node) is life and not self._time.is_alive(slot):
            await asyncio.wait([child.ended], timeout=READY_POLL_S)
            if self._daemons.waited_enough(node, patience):
                raise ProcessFailedError(f"not ready after {patience.why()}")
        if not child.alive:
            raise start_failure(child)
        if self._wanted(node) is life:
            await self._daemons.call(node, "status")

    # What `host_lifecycle` asks.

    def alive(self, node: str) -> bool:
        """Whether a process carries a node."""
        return self._daemons.members[node].alive

    def begins_ns(self, node: str) -> Instant | None:
        """When the node's present life begins, or else its next one; None when it has neither."""
        if self._runs(node):
            return self._living[node].start_ns
        life = self._wanted(node)
        return None if life is None else life.start_ns

    async def recall(self, node: str) -> None:
        """End a process that waits for a future life, and start it again, but not before a crash of its host."""
        async with self._turning[node]:
            life, child = self._living[node], self._daemons.members[node].child
            if node not in self._births and child is not None and child.alive:
                self._ahead.pop(node, None)
                self._superseded.add(node)
                await self._daemons.end(child)
                self._begin(node, life)

    # Births that fail.

    def _lose(self, node: str, start_ns: Instant, why: str) -> None:
        """Give up on the birth of a node: let the fabric go on, and list the death as a fault."""
        self._time.bury(self._daemons.layout.slot(node))
        self._journal.note("lost", start_ns, node=node, why=why)
        self._births.pop(node, None)
        if start_ns <= self._time.front_ns():  # otherwise the listed death can be healed before that life would begin
            self._died[node] = start_ns
        self._list_death(node, start_ns, f"{node} did not return: {why}", why)

    def _has_lived_out(self, node: str, life: Life) -> bool:
        """Whether a node has lived and died as planned: a life may end before its process has answered us."""
        slot = self._daemons.layout.slot(node)
        return self._time.is_alive(slot) and self._time.page.horizon(slot) == life.end_ns

    # End.

    async def close(self) -> None:
        """Cancel everything that is still planned."""
        await self._changes.close()
        await self._hosts.close()
        await self._background.close()
