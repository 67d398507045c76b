"""A daemon that dies though nobody asked for it is heard of at once by whoever runs anything over the fabric."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from orchestrator.apps.demo import Demo, DemoSettings
from orchestrator.fabric import Fabric
from orchestrator.fabric.readings import Death
from orchestrator.runs.death_watch import DaemonDiedError, DeathWatch, obituary
from tests.orchestrator.running import DEADLINE_S, T1
from tests.support.fabrics import SMALL
from tests.support.wait import eventually

NOTICED_WALL_S = 5.0
"""A quarter of a second, and what a busy machine adds."""


def test_an_obituary_is_one_line_and_the_last_lines() -> None:
    assert obituary(Death("h001", 12, "SIGKILL", ())) == "h001 at 12 ns: SIGKILL"
    assert obituary(Death("h001", 12, "exit code 1", ("a", "b"))) == "h001 at 12 ns: exit code 1\n  a\n  b"


@pytest.mark.integration
async def test_deaths_are_told_once_they_have_happened_and_old_ones_are_not(fabric: Fabric) -> None:
    watch = DeathWatch(fabric, fabric.broken)
    await watch.check()
    child = fabric.daemons.member(T1).child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(DaemonDiedError, match=f"{T1} at .*: SIGKILL"):
        await asyncio.wait_for(watch.go_on(), DEADLINE_S)
    await DeathWatch(fabric, fabric.broken, known=1).check()
    os.kill(fabric.state()["forkserver_pid"], signal.SIGKILL)
    await asyncio.wait_for(fabric.broken, DEADLINE_S)
    with pytest.raises(DaemonDiedError, match="the fork server has ended"):
        await DeathWatch(fabric, fabric.broken, known=1).check()


@pytest.mark.integration
@pytest.mark.slow
async def test_the_demonstration_hears_of_a_killed_switch_as_fast_as_a_run(tmp_path: Path) -> None:
    demo = Demo(SMALL, DemoSettings(tensor_mib=2, buckets=8))
    running = asyncio.create_task(demo.run(tmp_path / "demo"))
    await eventually(lambda: running.done() or demo.course.stage == "baseline", DEADLINE_S)
    observer = demo.course.observer
    assert observer is not None
    child = observer.fabric.daemons.member(T1).child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    began = time.monotonic()
    await eventually(lambda: demo.course.stage == "done" or running.done(), DEADLINE_S)
    assert time.monotonic() - began < NOTICED_WALL_S
    data = await running
    assert data["verdict"] != "pass"
    assert any(f"{T1}: SIGKILL" in reason for reason in data["reasons"]), data["reasons"]
