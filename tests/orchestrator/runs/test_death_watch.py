"""A daemon that dies though nobody asked for it is heard of at once by whoever runs anything over the fabric."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from orchestrator.apps.demo import plan_of
from orchestrator.fabric import Fabric
from orchestrator.fabric.readings import Death
from orchestrator.measures.judge import verdict
from orchestrator.measures.recording import Recording
from orchestrator.runs.backends import launched
from orchestrator.runs.death_watch import DaemonDiedError, DeathWatch, obituary
from orchestrator.runs.runner import Runner
from tests.orchestrator.running import DEADLINE_S, T1
from tests.support.fabrics import SMALL
from tests.support.runs import Ears

NOTICED_TICKS, TICK_S = 100, 0.05
"""Five seconds of our own: while this process is put aside no tick comes, and on a busy machine they are longer."""


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


class _Killer(Ears):
    """Kills a switch at the first look of a run, and counts ticks from then on."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.ticks: int | None = None
        self._folder = folder

    def looked(self, recording: Recording) -> None:
        if self.ticks is None:
            state = json.loads((self._folder / "state.json").read_text())
            os.kill(state["nodes"][T1]["pid"], signal.SIGKILL)
            self.ticks = 0

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            if self.ticks is not None:
                self.ticks += 1


@pytest.mark.integration
@pytest.mark.slow
async def test_the_demonstration_hears_of_a_killed_switch_at_once(tmp_path: Path) -> None:
    plan = plan_of(SMALL, tensor_mib=2, buckets=8)
    killer = _Killer(tmp_path / "demo")
    ticking = asyncio.create_task(killer.tick())
    recording = await asyncio.wait_for(Runner(launched(plan, tmp_path / "demo"), killer).carry_out(), 2 * DEADLINE_S)
    ticking.cancel()
    assert killer.ticks is not None
    assert killer.ticks < NOTICED_TICKS
    assert recording.ended == "lost"
    assert f"{T1} at " in recording.lost
    assert "SIGKILL" in recording.lost
    assert verdict(plan.expectations, recording).exit_code == 4
