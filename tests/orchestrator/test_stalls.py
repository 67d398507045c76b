"""A process that is stopped from outside: named, then ended."""

import os
import signal

import pytest

from orchestrator import stalls, timekeeper
from orchestrator.fabric import Fabric
from tests.orchestrator.running import MESSAGE_BYTES, T1, connect, totals_when_placed

pytestmark = pytest.mark.integration


async def test_a_stopped_daemon_is_named_and_then_ended_so_that_the_others_go_on(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "STALL_WALL_S", 0.5)
    monkeypatch.setattr(stalls, "FENCE_WALL_S", 1.0)
    write = await connect(fabric)
    child = fabric.roster.members[T1].child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    await totals_when_placed(fabric, MESSAGE_BYTES)
    assert [note["kind"] for note in fabric.journal.after(1)] == ["stalled", "fenced", "died"]
    assert {note["node"] for note in fabric.journal.after(1)} == {T1}
    assert fabric.unexpected_deaths() == [f"{T1}: SIGKILL"]
