"""A run from launch to recording: the same on both backends, and signals end it in good order."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mrcfabric.units import NEVER
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.recording import Recording
from orchestrator.runs.backend import Backend
from orchestrator.runs.backends import simulated
from orchestrator.runs.runner import Runner
from orchestrator.scenario.plan import Plan
from orchestrator.sim.backend import SimBackend
from tests.support.runs import BEGIN_NS, RTT_NS, Ears, after_bytes, conducted, pair, plan, reboot


class Poking(Ears):
    """Sends a signal to this process at the third look, and `more` at every one after it."""

    def __init__(self, number: int, more: int | None = None) -> None:
        super().__init__()
        self.number, self.more = number, more

    def looked(self, recording: Recording) -> None:
        if len(recording.looks) == 3:
            os.kill(os.getpid(), self.number)
        elif len(recording.looks) > 3 and self.more is not None:
            os.kill(os.getpid(), self.more)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_run_at_a_look_with_a_recording(number: int) -> None:
    runner = Runner(simulated(plan(programs=(pair(messages=4096),))), Poking(number))
    recording = await runner.carry_out()
    assert runner.signal == number
    assert recording.ended == "interrupted"
    assert BEGIN_NS + 10 * RTT_NS <= recording.end_ns <= BEGIN_NS + 20 * RTT_NS


async def test_a_closed_terminal_does_not_end_a_run_that_was_told_to_ignore_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        runner = Runner(simulated(plan(programs=(pair(messages=64),))), Poking(signal.SIGHUP))
        recording = await runner.carry_out()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (runner.signal, recording.ended) == (None, "complete")
    assert len(recording.looks) > 3


async def test_a_signal_before_the_run_ends_everything() -> None:
    entered, left = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def slow() -> AsyncIterator[tuple[Plan, Backend]]:
        entered.set()
        try:
            await asyncio.Event().wait()
            yield plan(), SimBackend(plan().topology)
        finally:
            left.set()

    runner = Runner(slow, Ears())
    running = asyncio.ensure_future(runner.carry_out())
    await entered.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (runner.signal, left.is_set()) == (signal.SIGTERM, True)


@pytest.mark.integration
@pytest.mark.timeout(120)
async def test_the_same_plan_gives_the_same_trace_on_both_backends(tmp_path: Path) -> None:
    """A switch that reboots by the timetable, one that dies for good, a link that a condition cuts twice."""
    cut = Fault(
        "cut", "link_down", ("p0-t0-0~p0-t1-0",), (Window(0, 10 * RTT_NS, {}), Window(15 * RTT_NS, 30 * RTT_NS, {}))
    )
    crash = Fault("crash", "switch_crash", ("p1-t1-0",), (Window(BEGIN_NS + 30 * RTT_NS + 7, NEVER, {}),))
    what = plan(
        faults=(reboot(8, 30), crash),
        triggers=(after_bytes(1 << 20, cut),),
        programs=(pair(messages=64), pair("more", 1, messages=64)),
    )
    expected = await conducted(what, "sim", tmp_path)
    seen = await conducted(what, "udp", tmp_path / "run")
    assert seen.lost == ""
    assert (seen.fidelity["late_share"], seen.fidelity["late_commands"], seen.fidelity["host_drops"]) == (0, 0, 0)
    assert len(seen.faults) == 3
    assert [look.at_ns for look in seen.looks] == [look.at_ns for look in expected.looks]
    assert seen.looks == expected.looks
    assert seen.trace_digest == expected.trace_digest
    assert seen.events == expected.events
    assert seen.programs == expected.programs
    assert (expected.wall, set(seen.wall or ())) == (None, {"launch_s", "run_s"})
