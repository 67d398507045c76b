"""What befalls a running fabric: faults asked for, daemons that die, and their return.

Owns the desired state (which faults are in force, who is to return when) and brings it about: commands to the daemons
ahead of their instants, the clock page held for a node that is to live again, the carrier of NICs beside a dead one.
What a fault means for whom is `orchestrator.faults`'; processes are `orchestrator.roster`'s.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from mrcfabric.clock import restart_horizon
from mrcfabric.control import NoAnswerError
from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import Instant, serialization_ns
from orchestrator.faults.table import FaultTable, Stamped
from orchestrator.journal import Journal
from orchestrator.launcher import Child, ProcessFailedError
from orchestrator.roster import READY_WALL_S, Roster, start_failure
from orchestrator.timekeeper import Timekeeper

COMMAND_WALL_S = 24 * 3600.0
"""A command waits for its instant as long as the fabric runs."""
READY_POLL_S = 0.004
WATCH_POLL_S = 1.0
FENCE_WALL_S = 30.0
"""A process that has held the fabric this long is killed, so that the others can go on."""


class Mishaps:
    """Faults, deaths and returns of one fabric."""

    def __init__(self, topology: Topology, roster: Roster, time: Timekeeper, journal: Journal) -> None:
        self.topology = topology
        self.table = FaultTable(topology)
        self.unexpected: list[str] = []
        """Nodes that ended though nobody had asked for it, each with how."""
        self._roster = roster
        self._time = time
        self._journal = journal
        self._plans: dict[str, Instant | None] = {}
        self._killed: set[str] = set()
        self._told: dict[str, list[Stamped]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        packet_bytes = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES
        self._serialization_ns = serialization_ns(packet_bytes, topology.rate_bps)
        self.absence_ns_min = 2 * topology.link_delay_ns + self._serialization_ns + 1
        """A node that returns must have been away this long, or frames meant for its return would be lost."""

    # Commands.

    async def carry_out(self, commands: Iterable[Stamped]) -> None:
        """Send commands and wait until each has been carried out. Raises RefusedError, NoAnswerError."""
        await asyncio.gather(*(self._send(command) for command in commands if self._reachable(command.node)))

    async def schedule(self, commands: Sequence[Stamped]) -> None:
        """Send commands and return when the daemons have them; a refusal is noted in the journal.

        A daemon answers a command when it has been carried out; but it answers in the order of asking that it lives,
        and has then taken every command sent before.
        """
        reachable = [command for command in commands if self._reachable(command.node)]
        for command in reachable:
            self._background(self._send(command), command.node)
        await asyncio.sleep(0)
        asked = {command.node for command in reachable}
        await asyncio.gather(*(self._roster.call(node, "status") for node in asked))

    def _reachable(self, node: str) -> bool:
        """A dead node is told when it returns."""
        return self._roster.members[node].alive

    async def _send(self, command: Stamped) -> Any:
        args = {"op": command.op, "args": command.args, "at_ns": command.at_ns}
        return await self._roster.call(command.node, "command", args, COMMAND_WALL_S)

    def _background(self, work: Coroutine[Any, Any, Any], node: str) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

        def done(finished: asyncio.Task[Any]) -> None:
            self._tasks.discard(finished)
            error = None if finished.cancelled() else finished.exception()
            if error is None:
                return
            # A command to a node that died meanwhile is no news: it learns the state of things when it returns.
            if isinstance(error, RefusedError | NoAnswerError | ProcessFailedError | ConfigError):
                if self._roster.members[node].alive:
                    self._journal.note("refused", self._time.now_ns(), node=node, why=str(error))
                return
            asyncio.get_running_loop().call_exception_handler({"message": str(error), "exception": error})

        task.add_done_callback(done)

    # Links and ports.

    async def link(self, name: str, at_ns: Instant | None, *, up: bool, loss_ppm: int) -> Instant:
        """Cut, heal or degrade a cable; see `Fabric.link`."""
        instant = self._instant(at_ns)
        commands = self.table.set_link(name, instant, up=up, loss_ppm=loss_ppm)
        self._journal.note("link", instant, link=name, up=up, loss_ppm=loss_ppm)
        return await self._bring_about(commands, instant, at_ns is None)

    async def nic_port(self, nic: str, plane: int, at_ns: Instant | None, *, up: bool) -> Instant:
        """Take a NIC's port down or up; see `Fabric.nic_port`."""
        instant = self._instant(at_ns)
        commands = self.table.set_nic_port(nic, plane, instant, up=up)
        self._journal.note("nic-port", instant, nic=nic, plane=plane, up=up)
        return await self._bring_about(commands, instant, at_ns is None)

    async def clear(self) -> Instant:
        """Heal every link and port."""
        instant = self._time.soon_ns()
        self._journal.note("clear", instant)
        return await self._bring_about(self.table.clear(instant), instant, True)

    async def _bring_about(self, commands: Sequence[Stamped], instant: Instant, now: bool) -> Instant:
        await (self.carry_out(commands) if now else self.schedule(commands))
        return instant

    def _instant(self, at_ns: Instant | None) -> Instant:
        if at_ns is None:
            return self._time.soon_ns()
        front_ns = self._time.page.fabric_front()
        if at_ns <= front_ns:
            raise RefusedError(f"{at_ns} ns has passed: the fabric has reached {front_ns} ns")
        return at_ns

    # Deaths and returns.

    async def crash(self, node: str, at_ns: Instant | None, restart_at_ns: Instant | None) -> Instant:
        """A death at an exact instant, and perhaps a return; see `Fabric.crash`."""
        member = self._roster.member(node)
        self._roster.require_own_process(member)
        instant = self._instant(at_ns)
        if node in self._plans:
            raise RefusedError(f"{node} is already to crash; plan its next crash when it is back")
        if not member.alive:
            raise RefusedError(f"{node} is down")
        if restart_at_ns is not None and restart_at_ns < instant + self.absence_ns_min:
            raise ConfigError(
                f"restart of {node} at {restart_at_ns} ns",
                f"is less than {self.absence_ns_min} ns after its crash at {instant} ns",
                "frames on their way need that long",
            )
        self._plans[node] = restart_at_ns
        try:
            await self._roster.call(node, "crash", {"at_ns": instant})
        except BaseException:
            self._plans.pop(node, None)
            raise
        commands = self.table.set_node(node, instant, up=False)
        if restart_at_ns is not None:
            commands += self.table.set_node(node, restart_at_ns, up=True)
        await self.schedule(commands)
        return instant

    async def kill(self, node: str) -> None:
        """SIGKILL at this moment; returns when the fabric goes on without the node."""
        member = self._roster.member(node)
        self._roster.require_own_process(member)
        if member.child is None or not member.alive:
            raise RefusedError(f"{node} is down already")
        self._killed.add(node)
        await self._roster.end(member.child)
        await member.child.ended
        await self.carry_out(self._told.pop(node, []))

    async def restart(self, node: str, at_ns: Instant | None = None) -> Instant:
        """A dead node lives again; returns its start when it has been reached, or with `at_ns` when it is certain."""
        member = self._roster.member(node)
        if member.alive:
            raise RefusedError(f"{node} is running")
        if node in self._plans:
            raise RefusedError(f"{node} is already to return")
        start_ns = max(self._time.soon_ns(), self.table.latest(node) + 1) if at_ns is None else at_ns
        if start_ns < self._time.page.fabric_front() + self.absence_ns_min:
            raise RefusedError(f"{node} cannot return at {start_ns} ns: the fabric is too near that instant")
        self._plans[node] = start_ns
        self._hold(node, 0, start_ns)
        self._time.wake()
        await self.schedule(self.table.set_node(node, start_ns, up=True))
        await self._return(node, start_ns)
        if at_ns is None and (child := member.child) is not None:
            slot = self._roster.layout.slot(node)
            await _until(child, lambda: self._time.page.horizon(slot) > start_ns)
        return start_ns

    def died(self, child: Child) -> None:
        """A process has ended: let the fabric go on without its nodes, or hold it for those that return."""
        for member in self._roster.members.values():
            if member.child is child:
                self._bury(member.node, child)

    def _bury(self, node: str, child: Child) -> None:
        slot = self._roster.layout.slot(node)
        died_ns = self._time.page.horizon(slot) if self._time.is_alive(slot) else self._time.now_ns()
        how = child.how_it_ended()
        planned = node in self._plans
        restart_ns = self._plans.get(node)
        returning = restart_ns is not None and died_ns < restart_ns and self._time.is_alive(slot)
        if returning and restart_ns is not None:
            self._hold(node, died_ns, restart_ns)
            self._background(self._return(node, restart_ns), node)
        else:
            self._plans.pop(node, None)
            self._time.bury(slot)
        self._journal.note("died", died_ns, node=node, how=how, planned=planned or node in self._killed)
        if not planned:
            told = self.table.set_node(node, died_ns, up=False, told_ns=self._time.soon_ns())
            if node in self._killed:
                self._told[node] = told
            else:
                self.unexpected.append(f"{node}: {how}")
                self._background(self.schedule(told), node)
        self._killed.discard(node)

    def _hold(self, node: str, died_ns: Instant, restart_ns: Instant) -> None:
        horizon_ns = restart_horizon(died_ns, restart_ns, self.topology.link_delay_ns, self._serialization_ns)
        self._time.hold_for(self._roster.layout.slot(node), horizon_ns)

    async def _return(self, node: str, start_ns: Instant) -> None:
        """Start the next incarnation; the page holds the fabric until it has bound its sockets."""
        slot = self._roster.layout.slot(node)
        child: Child | None = None
        try:
            member = await self._roster.restart(node, start_ns, self.table.state_for(node, start_ns))
            child = member.child
            assert child is not None
            async with asyncio.timeout(READY_WALL_S):
                await _until(child, lambda: self._time.is_alive(slot))
            if not child.alive:
                raise start_failure(child)
            await self._roster.call(node, "status")
        except (ProcessFailedError, ConfigError, NoAnswerError, RefusedError, TimeoutError) as error:
            self._time.bury(slot)
            why = str(error) or f"not ready after {READY_WALL_S:g} s"
            self.unexpected.append(f"{node} did not return: {why}")
            self._journal.note("lost", start_ns, node=node, why=why)
            raise
        finally:
            self._plans.pop(node, None)
        self._journal.note("returned", start_ns, node=node, incarnation=self._roster.members[node].incarnation)

    # Stalls.

    async def watch(self) -> None:
        """Note a process that holds the fabric, and kill it when it goes on holding it; until cancelled."""
        told = ""
        while True:
            await asyncio.sleep(WATCH_POLL_S)
            stalled = self._time.stalled()
            if stalled is None:
                told = ""
                continue
            slot, stood_s = stalled
            node = self.topology.node_name(slot)
            if node != told:
                told = node
                self._journal.note("stalled", self._time.now_ns(), node=node, pid=self._time.page.pid(slot))
            child = self._roster.members[node].child
            if stood_s >= FENCE_WALL_S and child is not None:
                self._journal.note("fenced", self._time.now_ns(), node=node, stood_s=round(stood_s))
                await self._roster.end(child)

    # End.

    async def close(self) -> None:
        """Forget what is still planned."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _until(child: Child, reached: Callable[[], bool]) -> None:
    """Wait for a predicate on the clock page, or for the end of a process."""
    while child.alive and not reached():
        await asyncio.wait([child.ended], timeout=READY_POLL_S)
