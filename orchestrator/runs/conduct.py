"""Carries out a plan from launch to recording: opens the venue, runs the course, leaves nothing behind.

Owns the life of a run around its course, signals included: the first SIGINT, SIGTERM or SIGHUP ends the run at its next
look, so that there is a report of what was; a second one, or one during the launch, ends it at once. What happens
meanwhile is `course`'s, what is made of it the caller's.
"""

import asyncio
import signal
import time
from typing import Final

from orchestrator.measures.recording import Recording
from orchestrator.runs.audience import Audience
from orchestrator.runs.course import Course
from orchestrator.runs.recorder import Recorder
from orchestrator.runs.venues import Venue
from orchestrator.scenario.plan import Plan

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Conduct:
    """One run. `carry_out` once, inside a running loop."""

    def __init__(self, venue: Venue, audience: Audience, *, trace: bool = False) -> None:
        """`trace`: the venue keeps digests of all that every node does."""
        self.signal: int | None = None
        """The signal that ended the run, if one did."""
        self.plan: Plan | None = None
        """What is carried out, once the venue is open."""
        self._venue = venue
        self._audience = audience
        self._trace = trace
        self._course: Course | None = None
        self._task: asyncio.Task[Recording] | None = None

    async def carry_out(self) -> Recording:
        """The recording, however the run ended. Nothing is left running.

        Raises ConfigError, RefusedError or ProcessFailedError when it could not begin, CancelledError after a signal
        when there is nothing to report.
        """
        loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(self._carry_out())
        for number in SIGNALS:
            loop.add_signal_handler(number, self._end, number)
        try:
            return await self._task
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _end(self, number: int) -> None:
        again = self.signal is not None
        self.signal = self.signal or number
        assert self._task is not None
        if self._course is None or again:
            self._task.cancel()
        else:
            self._course.interrupt()

    async def _carry_out(self) -> Recording:
        began = time.monotonic()
        async with self._venue() as (plan, bed):
            launched = time.monotonic()
            self.plan = plan
            self._audience.began(plan, bed.backend)
            recorder = Recorder(plan, bed, trace=self._trace)
            self._course = Course(plan, bed, recorder, self._audience)
            recording = await self._course.run()
            if bed.backend != "sim":
                recording.wall = {"launch_s": launched - began, "run_s": time.monotonic() - launched}
        return recording
