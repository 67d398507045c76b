"""The course of a run: programs loaded, the timetable carried out, look after look, until it is over.

Owns the order of events, the same on both backends: when time stands still, what is told then, which conditions are
asked, and when there is nothing left to wait for. What a look sees is `recorder`'s, how time is held the backend's,
what is made of it `orchestrator.measures`'s.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from mrcfabric.units import NEVER, Instant
from orchestrator.faults.absence import edges, partings, to_come
from orchestrator.faults.fault import Fault, Window
from orchestrator.mapper.link_watch import WatchSettings
from orchestrator.mapper.run_mapping import RunMapping
from orchestrator.measures.recording import Injected, Recording
from orchestrator.runs.backend import Backend, BackendLostError
from orchestrator.runs.job_control import JobControl
from orchestrator.runs.observer import RunObserver
from orchestrator.runs.recorder import Recorder
from orchestrator.scenario.plan import Plan, Trigger

LAST_LOOK_WALL_S: Final = 10.0
"""How long a run that was interrupted may take to reach its next stop and to look once more."""


@dataclass(slots=True)
class _Condition:
    """A trigger, and where it stands."""

    trigger: Trigger
    fired: int = 0
    armed: bool = True
    """False from firing until the condition was seen not to hold."""
    over_ns: Instant = 0
    """When the faults of the last time are over."""

    def due(self, recording: Recording, at_ns: Instant) -> bool:
        """Whether it fires at this look."""
        if self.fired >= self.trigger.times or at_ns < self.over_ns:
            return False
        holds = self.trigger.holds(recording)
        fires = holds and self.armed
        self.armed = not holds
        return fires

    def faults(self, at_ns: Instant) -> Iterator[Fault]:
        """Those of one more time; their windows begin after `at_ns`."""
        self.fired += 1
        ends = []
        for fault in self.trigger.faults:
            windows = tuple(_moved(window, at_ns + 1) for window in fault.windows)
            fault_id = fault.id if self.fired == 1 else f"{fault.id}-{self.fired}"
            ends.append(windows[-1].end_ns)
            yield replace(fault, id=fault_id, windows=windows)
        self.over_ns = max(ends, default=at_ns)


def _moved(window: Window, by_ns: int) -> Window:
    end_ns = NEVER if window.end_ns == NEVER else window.end_ns + by_ns
    return window._replace(start_ns=window.start_ns + by_ns, end_ns=end_ns)


class RunLoop:
    """One run on a backend whose time stands still before `plan.begin_ns`."""

    def __init__(self, plan: Plan, backend: Backend, recorder: Recorder, observer: RunObserver) -> None:
        self.plan = plan
        self._backend = backend
        self._recorder = recorder
        self._observer = observer
        self._conditions = [_Condition(trigger) for trigger in plan.triggers]
        self._mapping: RunMapping | None = None
        if plan.mapper is not None:
            settings = WatchSettings.of(plan.topology, plan.mapper.period_ns, deny=plan.mapper.deny)
            self._mapping = RunMapping(plan.topology, settings, plan.begin_ns)
            recorder.recording.probe_period_ns = settings.period_ns
        self._timetable = sorted(plan.faults, key=lambda fault: fault.start_ns)
        self._end_ns = plan.begin_ns + plan.length_ns
        self._jobs = JobControl(plan.programs, backend, recorder, plan.look_ns, self._approach)
        self._interrupted = asyncio.Event()

    @property
    def recording(self) -> Recording:
        return self._recorder.recording

    def interrupt(self) -> None:
        """End the run at the next look; from a signal, at any moment."""
        self._interrupted.set()

    async def run(self) -> Recording:
        """Carry out the plan; the recording says how it ended. Raises ConfigError, RefusedError before time moves."""
        lost = ""
        try:
            await self._backend.order(self.plan.orders)
            await self._backend.load(self.plan.programs)
            ended = await self._until_over()
        except BackendLostError as error:
            ended, lost = "lost", str(error)
        self._recorder.close(ended, lost)
        return self.recording

    async def _until_over(self) -> str:
        work = asyncio.ensure_future(self._go())
        told = asyncio.ensure_future(self._interrupted.wait())
        try:
            await asyncio.wait({work, told}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await asyncio.wait({work}, timeout=LAST_LOOK_WALL_S)
            return work.result() if work.done() else "interrupted"
        finally:
            told.cancel()
            work.cancel()
            await asyncio.gather(work, told, return_exceptions=True)

    async def _go(self) -> str:
        plan, backend = self.plan, self._backend
        # What happens at the very instant of the begin is the run's: it is looked right before.
        await self._inject_until(plan.begin_ns)
        await self._reach(plan.begin_ns - 1)
        await self._recorder.begin()
        await self._reach(plan.begin_ns)
        self._observer.looked(self.recording)
        quiet_ns: Instant | None = None
        while True:
            # Looks stand on a grid, wherever time stood still in between.
            next_ns = plan.begin_ns + ((backend.now_ns - plan.begin_ns) // plan.look_ns + 1) * plan.look_ns
            next_ns = min(next_ns, self._end_ns)
            if quiet_ns is not None:
                next_ns = min(next_ns, max(quiet_ns + plan.settle_ns, backend.now_ns + 1))
            next_ns = max(min(next_ns, self._jobs.next_ns()), backend.now_ns)
            await self._reach(next_ns)
            await self._recorder.look()
            self._observer.looked(self.recording)
            await self._jobs.act()
            if self._working:
                await self._ask_conditions()
            ended, quiet_ns = self._whether_over(quiet_ns)
            if ended:
                await self._recorder.finish()
                # A run that was stopped for long has lost its lease, and has seen a fabric that went on without it.
                await self._backend.confirm()
                return ended

    @property
    def _working(self) -> bool:
        """Whether some rank still has something to do, or will have after a restart."""
        return self._recorder.working or self._jobs.pending

    def _whether_over(self, quiet_ns: Instant | None) -> tuple[str, Instant | None]:
        """How the run has ended, "" while it goes on; and since when there has been nothing to wait for."""
        now_ns = self._backend.now_ns
        if self._interrupted.is_set():
            return "interrupted", quiet_ns
        if self._timetable or any(to_come(one.fault, now_ns) for one in self.recording.faults):
            quiet_ns = None
        elif self._working:
            self._backend.nothing_to_come()
            if self._backend.idle and not self._jobs.pending:
                return "stalled", quiet_ns
            quiet_ns = None
        else:
            quiet_ns = now_ns if quiet_ns is None else quiet_ns
            if self._backend.idle or now_ns >= quiet_ns + self.plan.settle_ns:
                return "complete", quiet_ns
        return ("length" if now_ns >= self._end_ns else ""), quiet_ns

    async def _reach(self, at_ns: Instant) -> None:
        """Go on to an instant, and let the mapper look when its time comes on the way."""
        mapping = self._mapping
        while mapping is not None and mapping.due_ns <= at_ns:
            await self._pass(mapping.due_ns)
            await self._map(mapping)
        await self._pass(at_ns)

    async def _pass(self, at_ns: Instant) -> None:
        await self._approach(at_ns)
        await self._backend.run_until(at_ns)

    async def _map(self, mapping: RunMapping) -> None:
        """One look of the mapper, and what follows from it."""
        backend, recorder = self._backend, self._recorder
        heard = recorder.within_reach(list(self.plan.topology.nic_names()))
        findings, orders = await mapping.look(backend, heard)
        changed = recorder.mapped(backend.now_ns, findings)
        if changed is not None:
            self._observer.mapped(changed)
        if orders:
            # Each has an instant of its own. Who goes meanwhile is told nothing any more.
            until_ns = backend.now_ns + len(orders)
            going = {node for _, nodes in partings(backend.faults(), backend.now_ns, until_ns) for node in nodes}
            await self._approach(until_ns)
            await backend.order([one for one in orders if one.node not in going])

    async def _approach(self, at_ns: Instant) -> None:
        """Tell what begins up to an instant, and hear who dies by then, right before. Then time may go on to it."""
        await self._inject_until(at_ns)
        faults, now_ns = self._backend.faults(), self._backend.now_ns
        going, changing = dict(partings(faults, now_ns, at_ns)), dict(edges(faults, now_ns, at_ns))
        for stop_ns in sorted(going.keys() | changing.keys()):
            await self._backend.run_until(stop_ns - 1)
            await self._recorder.edge(changing.get(stop_ns, ()))
            if stop_ns in going:
                await self._recorder.last_words(going[stop_ns])

    async def _inject_until(self, at_ns: Instant) -> None:
        while self._timetable and self._timetable[0].start_ns <= at_ns:
            await self._inject(self._timetable.pop(0), "")

    async def _inject(self, fault: Fault, why: str) -> None:
        await self._backend.inject(fault)
        injected = Injected(fault, why=why)
        self._recorder.injected(injected)
        self._observer.injected(injected)

    async def _ask_conditions(self) -> None:
        now_ns = self._backend.now_ns
        for condition in self._conditions:
            if condition.due(self.recording, now_ns):
                self._observer.triggered(condition.trigger, now_ns)
                for fault in condition.faults(now_ns):
                    await self._inject(fault, condition.trigger.text)
