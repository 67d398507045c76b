"""Carries out a plan from launch to recording: opens the backend, runs the loop, leaves nothing behind.

Owns the life of a run around its loop, signals included: the first SIGINT, SIGTERM or SIGHUP ends the run at its next
look, so that there is a report of what was; a second one, or one during the launch, ends it at once. What happens
meanwhile is `loop`'s, what is made of it the caller's.
"""

import asyncio
import time

from orchestrator.measures.recording import Recording
from orchestrator.process.end_signals import end_signals
from orchestrator.runs.backends import OpenBackend
from orchestrator.runs.loop import RunLoop
from orchestrator.runs.observer import RunObserver
from orchestrator.runs.recorder import Recorder
from orchestrator.scenario.plan import Plan


class Runner:
    """One run. `carry_out` once, inside a running loop."""

    def __init__(self, open_backend: OpenBackend, observer: RunObserver, *, trace: bool = False) -> None:
        """`trace`: the backend keeps digests of all that every node does."""
        self.signal: int | None = None
        """The signal that ended the run, if one did."""
        self.plan: Plan | None = None
        """What is carried out, once the backend is open."""
        self._open_backend = open_backend
        self._observer = observer
        self._trace = trace
        self._run_loop: RunLoop | None = None
        self._task: asyncio.Task[Recording] | None = None

    async def carry_out(self) -> Recording:
        """The recording, however the run ended. Nothing is left running.

        Raises ConfigError, RefusedError or ProcessFailedError when it could not begin, CancelledError after a signal
        when there is nothing to report.
        """
        loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(self._carry_out())
        signals = end_signals()
        for number in signals:
            loop.add_signal_handler(number, self._end, number)
        try:
            return await self._task
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            for number in signals:
                loop.remove_signal_handler(number)

    def _end(self, number: int) -> None:
        again = self.signal is not None
        self.signal = self.signal or number
        assert self._task is not None
        if self._run_loop is None or again:
            self._task.cancel()
        else:
            self._run_loop.interrupt()

    async def _carry_out(self) -> Recording:
        began = time.monotonic()
        async with self._open_backend() as (plan, backend):
            launched = time.monotonic()
            self.plan = plan
            self._observer.began(plan, backend.kind)
            recorder = Recorder(plan, backend, trace=self._trace)
            self._run_loop = RunLoop(plan, backend, recorder, self._observer)
            recording = await self._run_loop.run()
            if backend.kind != "sim":
                recording.wall = {"launch_s": launched - began, "run_s": time.monotonic() - launched}
        return recording
