"""The backend of real daemons: a fabric that was launched or that runs already, with its time in the hands of a run.

Owns the waiting: for fabric time to come to the limit, for commands to be carried out, for ranks that are processes,
and what to say when a daemon died meanwhile. Time itself is the fabric's (`orchestrator.hosts.clock.timekeeper`),
faults and deaths are its (`lifecycle`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.units import Instant
from nicd.programs.program import Program
from orchestrator.fabric.verbs import Verbs
from orchestrator.fabric.worker_processes import WorkerProcesses
from orchestrator.faults.fault import Fault
from orchestrator.process.answer_wait import OwnTime, bound_s
from orchestrator.process.launcher import ProcessFailedError
from orchestrator.runs.backend import BackendLostError
from orchestrator.runs.death_watch import CHECK_WALL_S, DaemonDiedError, DeathWatch
from orchestrator.runs.rank_processes import RankProcesses
from orchestrator.runs.worker_placement import processes_of
from orchestrator.scenario.plan import Order
from orchestrator.scenario.process_kinds import PROCESSES
from orchestrator.workers.group import WorkerFailedError, WorkerGroup, started_group

POLL_S = 0.002
POLL_S_MAX = 0.02
POLL_SHARE = 0.1
"""How often the fabric is asked whether it has come to the limit: by the time that it has taken so far."""
LOAD_WALL_S = 120.0
"""So long a NIC may take to make its memory and QPs."""
LOST_WALL_S = 5.0
"""How long a daemon's silence waits for the news of its death."""


SILENCE = (RefusedError, NoAnswerError, ProcessFailedError)


@dataclass(frozen=True, slots=True)
class Past:
    """What a fabric had seen before the run."""

    faults: tuple[Fault, ...] = ()
    """Those that are not over."""
    deaths: int = 0
    """How many nobody had asked for."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Program -> how it is called in the fabric, where its name is perhaps taken."""


NO_PAST = Past()


class UdpBackend:
    """Daemons on real UDP."""

    kind = "udp"

    def __init__(
        self,
        fabric: Verbs,
        now_ns: Instant,
        owner: str = "",
        past: Past = NO_PAST,
        broken: "asyncio.Future[str] | None" = None,
        workers: WorkerProcesses | None = None,
    ) -> None:
        """`now_ns`: the limit at which the fabric stands; `owner` has time in its hands and answers for faults.

        `broken`: done, with the reason, when the fabric as a whole has come to an end; `workers` starts the ranks that
        are processes. Then `close` ends them.
        """
        self.topology = fabric.topology
        self.now_ns = now_ns
        self.idle = False
        self._fabric = fabric
        self._owner = owner
        self._past = past
        self._deaths = DeathWatch(fabric, broken, past.deaths)
        self._own_names = {new: name for name, new in past.names.items()}
        self._faults: dict[str, Fault] = {fault.id: fault for fault in past.faults}
        self._workers = workers
        self._processes: list[tuple[RankProcesses, WorkerGroup]] = []
        self._groups = AsyncExitStack()

    async def close(self) -> None:
        """End the ranks that are processes."""
        for ranks, _ in self._processes:
            await ranks.close()
        await self._groups.aclose()

    async def run_until(self, at_ns: Instant) -> None:
        for ranks, group in self._processes:
            if ranks.due(at_ns):
                await self._move_to(ranks.program.begin_ns - 1)
                await ranks.begin(group)
        await self._move_to(at_ns)

    async def _move_to(self, at_ns: Instant) -> None:
        if at_ns <= self.now_ns:
            return
        try:
            await self._fabric.limit(at_ns, self._owner)
            await self._until_reached(at_ns)
        except SILENCE as error:
            raise BackendLostError(str(error)) from None

    async def _until_reached(self, at_ns: Instant) -> None:
        clock = asyncio.get_running_loop().time
        begun_s = checked_s = clock()
        while True:
            reading = await self._fabric.clock()
            # While time goes on, work may pass from one node to the next behind the reader's back.
            still = reading.idle and (reading.standing or reading.state == "sleep")
            self.idle = still and not any(ranks.to_do for ranks, _ in self._processes)
            # A process that computes is at work though nothing is pending in the fabric: it will post again.
            if reading.now_ns >= at_ns or (still and not any(ranks.computing for ranks, _ in self._processes)):
                break
            if clock() - checked_s > CHECK_WALL_S:
                await self._check_deaths()
                checked_s = clock()
            await asyncio.sleep(min(max(POLL_S, (clock() - begun_s) * POLL_SHARE), POLL_S_MAX))
        await self._check_deaths()
        # A fabric in which nothing is pending need not move to be there.
        self.now_ns = at_ns

    def nothing_to_come(self) -> None:
        for ranks, _ in self._processes:
            ranks.nothing_to_come(self.now_ns)

    async def load(self, programs: Sequence[Program]) -> None:
        """As `Backend.load`; every program has an instant of its own. Ranks that are processes are started, and their
        QPs connected."""
        await self._carry_out(
            [
                [(self.topology.node_name(index), "run_program", self._named(one)) for index in one.ranks]
                for one in programs
                if one.kind not in PROCESSES
            ]
        )
        for one in programs:
            if one.kind in PROCESSES:
                await self._start_processes(one)

    async def _start_processes(self, program: Program) -> None:
        assert self._workers is not None, "who has no workers refuses such a plan"
        ranks = RankProcesses(program, self.topology)
        members = ranks.members(self._workers.verbs_path)
        spawn = processes_of(self._workers, f"rank-{program.name}")
        opening = asyncio.ensure_future(self._groups.enter_async_context(started_group(members, spawn)))
        try:
            # A NIC makes and connects QPs at instants of fabric time: it moves on by the least there is.
            while not opening.done():
                await asyncio.wait([opening], timeout=POLL_S_MAX)
                await self._move_to(self.now_ns + 1)
            self._processes.append((ranks, opening.result()))
        except (WorkerFailedError, ProcessFailedError) as error:
            raise RefusedError(str(error)) from None
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)

    async def stop(self, program: Program, nics: Sequence[str]) -> None:
        """As `Backend.stop`."""
        name = self._past.names.get(program.name, program.name)
        batch = [(nic, "stop_program", {"name": name}) for nic in nics]
        # Also without anybody to tell, so that time is where it is in virtual time.
        await (self._carry_out([batch]) if batch else self._move_to(self.now_ns + 1))

    async def order(self, orders: Sequence[Order]) -> None:
        """As `Backend.order`; every order has an instant of its own."""
        await self._carry_out([[(one.node, one.op, dict(one.args))] for one in orders])

    async def _carry_out(self, batches: Sequence[Sequence[tuple[str, str, dict[str, Any]]]]) -> None:
        """Commands (node, op, args), one batch after the other. Raises RefusedError with a node's reason."""
        if not batches:
            return
        # One instant for each batch, so that it does not matter in which order a daemon is told.
        told = [
            asyncio.ensure_future(self._give(node, op, args, self.now_ns + 1 + place))
            for place, batch in enumerate(batches)
            for node, op, args in batch
        ]
        at_ns = self.now_ns + len(batches)
        try:
            # Time moves only when every daemon has its commands.
            await self._heard({node for batch in batches for node, _, _ in batch})
            await self._fabric.limit(at_ns, self._owner)
            await asyncio.gather(*told)
            await self._until_reached(at_ns)
        finally:
            for one in told:
                one.cancel()
            await asyncio.gather(*told, return_exceptions=True)

    def _named(self, program: Program) -> dict[str, Any]:
        name = self._past.names.get(program.name, program.name)
        return {"program": replace(program, name=name).settings()}

    async def _give(self, node: str, op: str, args: dict[str, Any], at_ns: Instant) -> None:
        try:
            await self._fabric.call(node, "command", {"op": op, "args": args, "at_ns": at_ns}, LOAD_WALL_S)
        except RefusedError as error:
            raise RefusedError(f"{node}: {error}") from None

    async def _heard(self, nodes: set[str]) -> None:
        """A daemon answers in the order of asking: one that says how it is has heard all that was told before."""
        await asyncio.sleep(0)
        await asyncio.gather(*(self.ask(node, "status") for node in sorted(nodes)))

    async def inject(self, fault: Fault) -> None:
        try:
            await self._fabric.inject(replace(fault, owner=self._owner))
        except SILENCE as error:
            await self._check_deaths()
            if isinstance(error, RefusedError):
                raise
            raise BackendLostError(f"{error}") from None
        self._faults[fault.id] = fault

    async def counters(self, nodes: Sequence[str]) -> dict[str, dict[str, Any]]:
        """As `Backend.counters`."""
        found = await self._answers(nodes)
        # A process that is being replaced while time stands still answers a moment later.
        own = OwnTime()
        while missing := [node for node in nodes if node not in found]:
            await self._check_deaths()
            own.tick()
            if own.passed_s > (limit_s := bound_s(self.topology.nodes)):
                raise BackendLostError(f"{missing[0]} has been down for {limit_s:.0f} s")
            await asyncio.sleep(POLL_S)
            found |= await self._answers(missing)
        return found

    async def _answers(self, nodes: Sequence[str]) -> dict[str, dict[str, Any]]:
        try:
            return await self._fabric.patiently(lambda: self._fabric.counters(nodes))
        except SILENCE as error:
            raise BackendLostError(f"{error}") from None

    async def ask(self, node: str, op: str, args: Mapping[str, Any] | None = None) -> Any:
        """As `Backend.ask`; of programs only those of this run, under their own names."""
        try:
            answer = await self._fabric.patiently(lambda: self._fabric.call(node, op, args))
        except SILENCE as error:
            await self._until_told(node)
            raise BackendLostError(f"{node} does not answer to {op}: {error}") from None
        if self._own_names:
            answer = self._by_own_names(op, answer)
        for ranks, _ in self._processes:
            if op == "progress":
                answer |= ranks.progress(node)
            if op == "programs":
                answer += ranks.records(node)
        return answer

    def _by_own_names(self, op: str, answer: Any) -> Any:
        if op == "progress":
            return {name: answer[new] for new, name in self._own_names.items() if new in answer}
        if op == "programs":
            names = self._own_names
            return [{**entry, "name": names[entry["name"]]} for entry in answer if entry["name"] in names]
        return answer

    async def fidelity(self) -> dict[str, Any]:
        return await self._fabric.fidelity()

    async def host_pairs(self) -> list[dict[str, Any]]:
        """As `Backend.host_pairs`."""
        try:
            return await self._fabric.patiently(self._fabric.host_pairs)
        except SILENCE as error:
            raise BackendLostError(f"{error}") from None

    async def confirm(self) -> None:
        """As `Backend.confirm`: an owner whose lease has ended is refused, with the reason."""
        try:
            await self._fabric.limit(self.now_ns, self._owner)
        except SILENCE as error:
            raise BackendLostError(str(error)) from None

    def faults(self) -> Sequence[Fault]:
        return [fault for fault in self._faults.values() if fault.end_ns > self.now_ns]

    async def _check_deaths(self) -> None:
        try:
            await self._deaths.check()
        except DaemonDiedError as error:
            raise BackendLostError(str(error)) from None

    async def _until_told(self, node: str) -> None:
        """Whoever is silent has perhaps died, and the news of it says more."""
        deadline = asyncio.get_running_loop().time() + LOST_WALL_S
        while asyncio.get_running_loop().time() < deadline:
            await self._check_deaths()
            await asyncio.sleep(POLL_S)
