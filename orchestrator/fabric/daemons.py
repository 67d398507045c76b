"""The daemons of one fabric: starts them on their hosts, asks them, restarts them and notes their deaths.

Owns which process carries which node in which incarnation, and the control client of each node.
`orchestrator.hosts.share` starts processes on a host. `orchestrator.hosts.clock.timekeeper` decides when fabric time
may pass a node that is down. `orchestrator.fabric.lifecycle` decides which nodes die and return.
"""

import asyncio
import contextlib
import math
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mrcfabric.control import ControlClient, NoAnswerError, Realm
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.units import NEVER, Instant
from orchestrator.fabric.arguments import texts
from orchestrator.fabric.batches import Batches
from orchestrator.fabric.past_lives import PastLives
from orchestrator.faults.table import Stamped
from orchestrator.hosts.clock.timekeeper import Timekeeper
from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.placement.layout import Layout, ProcessPlan
from orchestrator.hosts.placement.site import LEADER
from orchestrator.hosts.share import RELAY
from orchestrator.process.answer_wait import TICK_WALL_S, AnswerWait
from orchestrator.process.launcher import Child, ProcessFailedError, where_logged

READY_POLL_S = 0.004
SCRAPE_WALL_S = 10.0
"""How long a scrape of metrics waits for a daemon, in wall time."""
SPAWNS_MAX = 16
"""Requests that the fork server may work on at once; each takes a descriptor in this process and one in the server."""
EXIT_CONFIG = 2


@dataclass(slots=True)
class Member:
    """One node of the fabric and the process that carries it."""

    node: str
    process: ProcessPlan
    incarnation: int = 0
    child: Child | None = None
    client: ControlClient | None = None

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.alive


class Daemons:
    """All daemons of one fabric. Call `start_all` first, then `call` any of them."""

    def __init__(self, layout: Layout, cluster: Cluster, time: Timekeeper, realm: Realm, trace: bool) -> None:
        """`cluster`: the hosts, open before `start_all`."""
        self.layout = layout
        self.members = {node: Member(node, plan) for plan in layout.processes for node in plan.nodes}
        self.batches = Batches(self.members, self.call)
        """Questions to many daemons."""
        self.past = PastLives()
        """What daemons have reported about the fidelity of the emulation, over all lives."""
        self._cluster = cluster
        self._time = time
        self._realm = realm
        self._trace = trace

    async def start_all(self, broken: asyncio.Future[str]) -> None:
        """Start every process and return when every daemon has bound its sockets and answers.

        `broken`: a future that is set, with the reason, when no daemon can start any more. Raises ConfigError when
        a daemon refuses its configuration. Raises ProcessFailedError when `broken` is set or a process ends early;
        the error quotes the last words of that process.
        """
        starting = asyncio.get_running_loop().create_task(self._start_all())
        either: list[asyncio.Future[Any]] = [starting, broken]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready = starting.done()
            starting.cancel()
            await asyncio.wait([starting])
        if not ready:
            raise ProcessFailedError(broken.result())
        starting.result()

    async def _start_all(self) -> None:
        for node in self.members:
            self._time.page.mark_booting(self.layout.slot(node), 0)
        gate = asyncio.Semaphore(SPAWNS_MAX)

        async def start(plan: ProcessPlan) -> None:
            async with gate:
                await self._spawn(plan, 0, dict.fromkeys(plan.nodes, ()))

        await asyncio.gather(*(start(plan) for plan in self.layout.processes))
        await self._until_bound()
        await self._until_all_answer()

    async def restart(
        self, node: str, start_ns: Instant, commands: Sequence[Stamped], crash_ns: Instant = NEVER
    ) -> Child:
        """Start the next incarnation of a dead node; it lives from `start_ns` to `crash_ns`.

        `commands`: what it is told before its life begins.
        """
        member = self.members[node]
        assert not member.alive
        member.incarnation += 1
        if member.client is not None:
            member.client.close()
            member.client = None
        await self._spawn(member.process, start_ns, {node: commands}, crash_ns)
        assert member.child is not None
        return member.child

    async def _spawn(
        self,
        plan: ProcessPlan,
        start_ns: Instant,
        commands: Mapping[str, Sequence[Stamped]],
        crash_ns: Instant = NEVER,
    ) -> None:
        """Start these nodes of a process."""
        tables = {node: self._table(node, start_ns, told) for node, told in commands.items()}
        if crash_ns < NEVER:
            tables = {node: {**table, "crash_ns": crash_ns} for node, table in tables.items()}
        slots = [self.layout.slot(node) for node in tables]
        orders = {slot: self._time.page.orders(slot) for slot in slots}
        children = await self._cluster.share(plan.site).spawn(plan, tables, orders)
        for node, child in zip(tables, children, strict=True):
            self.members[node].child = child

    def _table(self, node: str, start_ns: Instant, commands: Sequence[Stamped]) -> dict[str, Any]:
        """The configuration of one daemon (`mrcfabric.daemon_config`)."""
        layout = self.layout
        share = self._cluster.share(layout.sites.number(node))
        fds = share.descriptors
        links = layout.links_of(node)
        for link in links:
            # A peer on another host has no doorbell here: ring the relay, which carries the news there.
            link["peer_doorbell"] = fds.doorbells.get(layout.process_of[link["peer_node"]], fds.doorbells.get(RELAY))
        return {
            "node": node,
            "fabric": layout.topology.name,
            "epoch": self._realm.epoch,
            "incarnation": self.members[node].incarnation,
            "topology": layout.topology.to_dict(),
            "links": links,
            "control": list(layout.control_address(node)),
            "secret": self._realm.secret.hex(),
            "clock": {
                "page_fd": fds.page,
                "slot": layout.slot(node),
                "doorbell_fd": fds.doorbells[layout.process_of[node]],
                "agent_doorbell_fd": fds.agent_doorbell,
                "one_host": not layout.sites.several,
            },
            "run_dir": str(share.folder),
            "start_ns": start_ns,
            "commands": [{"at_ns": one.at_ns, "op": one.op, "args": one.args} for one in commands],
            "trace": self._trace,
            "crowd": layout.crowd(node),
            "alive_fd": fds.alive,
        }

    async def _until_bound(self) -> None:
        endings = {member.child.ended for member in self.members.values() if member.child is not None}
        patience, late = self.patience(), len(self.members) + 1
        while not self._time.all_alive():
            done, _ = await asyncio.wait(endings, timeout=READY_POLL_S, return_when=asyncio.FIRST_COMPLETED)
            if done:
                break
            if not patience.due:
                continue
            waiting = [node for node in self.members if not self._time.is_alive(self.layout.slot(node))]
            if len(waiting) < late:
                late = len(waiting)
                patience.heard()
            if patience.ended([self._pid_here(self.members[node]) for node in waiting]):
                more = f" and {late - 1} more are" if late > 1 else " is"
                raise ProcessFailedError(f"{waiting[0]}{more} not ready after {patience.why()}")
        self._raise_if_one_died()

    def _raise_if_one_died(self) -> None:
        for member in self.members.values():
            if member.child is not None and not member.child.alive:
                raise start_failure(member.child)

    async def _until_all_answer(self) -> None:
        try:
            await asyncio.gather(*(self.call(node, "status") for node in self.members))
        except RefusedError:
            self._raise_if_one_died()  # how a daemon died explains more than its missing answer
            raise

    def patience(self) -> AnswerWait:
        """A new `AnswerWait`, for one wait for a daemon."""
        return AnswerWait(len(self.layout.processes))

    def waited_enough(self, node: str, patience: AnswerWait) -> bool:
        """Whether to stop waiting for the daemon of a node (`AnswerWait.ended`)."""
        return patience.ended([self.pid_here(node)])

    def pid_here(self, node: str) -> int | None:
        """The process id of a node; None when it runs on another host or has no process."""
        return self._pid_here(self.members[node])

    @staticmethod
    def _pid_here(member: Member) -> int | None:
        """The process id of a node; None when it runs on another host or has no process."""
        return member.child.pid if member.child is not None and member.process.site == LEADER else None

    async def give_up_on(self, node: str, wait: "asyncio.Future[Any]") -> str:
        """Wait until a future is done, but no longer than it makes sense to wait for the daemon of a node.

        Returns "" when the future is done, else why the wait was given up.
        """
        patience = self.patience()
        while not (await asyncio.wait([wait], timeout=TICK_WALL_S))[0]:
            if not self.whole:  # fabric time stands still while hosts cannot reach each other: start the wait anew
                patience = self.patience()
            elif self.waited_enough(node, patience):
                return f"has not answered for {patience.why()}"
        return ""

    async def call(
        self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        """Ask a daemon and return its answer. With `timeout_s` None, `AnswerWait` decides how long to wait.

        Raises ConfigError (no such node), RefusedError (the daemon refuses or is down), NoAnswerError.
        """
        member = self.member(node)
        child = member.child
        if child is None or not child.alive:
            raise RefusedError(f"{node} is down" + (f" ({child.how_it_ended()})" if child is not None else ""))
        client = member.client or await self._open_client(member)
        asked = asyncio.ensure_future(client.call(op, args, math.inf if timeout_s is None else timeout_s))
        patience = self.patience() if timeout_s is None else None
        try:
            while True:
                tick_s = None if patience is None else TICK_WALL_S
                done, _ = await asyncio.wait([asked, child.ended], timeout=tick_s, return_when=asyncio.FIRST_COMPLETED)
                if asked.done():
                    return asked.result()
                if done:
                    break
                if patience is not None and self.waited_enough(node, patience):
                    raise NoAnswerError(f"{op}: no answer from {node}{client.heard_last} after {patience.why()}")
        finally:
            asked.cancel()
        raise RefusedError(f"{node} has ended ({child.how_it_ended()}) before it answered {op}")

    async def counters(
        self,
        nodes: Sequence[str] | None,
        timeout_s: float | None,
        silent: list[str] | None,
        parts: Sequence[str] | None,
    ) -> dict[str, dict[str, Any]]:
        """See `Fabric.counters`."""
        asked = [node for node in (self.members if nodes is None else texts("nodes", nodes)) if self.member(node).alive]
        lives = [self.members[node].incarnation for node in asked]
        args = {} if parts is None else {"parts": list(parts)}
        answers = await self.batches.ask(asked, "counters", args, timeout_s)
        found = {}
        for node, incarnation in zip(asked, lives, strict=True):
            answer = answers[node]
            if isinstance(answer, NoAnswerError) and silent is not None:
                silent.append(node)
            elif isinstance(answer, RefusedError):
                pass  # it died after it was asked
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found[node] = answer
                if "fidelity" in answer:
                    self.past.note(node, incarnation, answer["fidelity"])
        return found

    async def _open_client(self, member: Member) -> ControlClient:
        """Open the client of the present incarnation. Another call may open one meanwhile; then that one is kept."""
        incarnation, address = member.incarnation, self.layout.control_address(member.node)
        client = ControlClient(address, self._realm.of(member.node), incarnation=incarnation)
        await client.open()
        if member.client is None and member.incarnation == incarnation:
            member.client = client
            return client
        client.close()
        if member.client is None:
            raise RefusedError(f"{member.node} has been started again meanwhile")
        return member.client

    @property
    def whole(self) -> bool:
        """Whether all hosts can reach each other (`Cluster.whole`)."""
        return self._cluster.whole

    def member(self, node: str) -> Member:
        """Find a node by name. Raises ConfigError that names the nearest match."""
        if node not in self.members:
            self.layout.topology.parse_node(node)
        return self.members[node]

    async def end(self, child: Child) -> None:
        """Kill a daemon and return when it has ended, by itself or with its host. `on_death` is called as usual.

        A process that is shared and does not carry this out in time is killed whole.
        """
        await self._kill(child, whole=False)
        patience = self.patience()
        while child.life is not None and not (await asyncio.wait([child.ended], timeout=TICK_WALL_S))[0]:
            if patience.ended([None if self._site(child) != LEADER else child.pid]):
                await self._kill(child, whole=True)
                break
        await child.ended

    async def end_process(self, child: Child) -> None:
        """Kill the process of a daemon, with all daemons in it, and return when it has ended."""
        await self._kill(child, whole=True)
        await child.ended

    async def _kill(self, child: Child, *, whole: bool) -> None:
        with contextlib.suppress(ProcessFailedError):  # its host is lost, or is silent until it is declared lost
            await self._cluster.share(self._site(child)).signal(child, signal.SIGKILL, whole=whole)

    def _site(self, child: Child) -> int:
        return next(member.process.site for member in self.members.values() if member.child is child)

    def close(self) -> None:
        """Close the control clients. The launcher ends the processes."""
        for member in self.members.values():
            if member.client is not None:
                member.client.close()
                member.client = None


def start_failure(child: Child) -> Exception:
    """The error to raise for a daemon that ended before it was ready."""
    how = child.how_it_ended()
    if child.ended.result() == EXIT_CONFIG:
        return ConfigError(child.name, f"did not start: {how.removeprefix('exit code 2: ')}")
    return ProcessFailedError(f"{child.name} died at start ({how}){where_logged(child.log)}")
