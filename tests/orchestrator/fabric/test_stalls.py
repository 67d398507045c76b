"""A process that is stopped from outside: named, then ended."""

import asyncio
import os
import re
import signal

import pytest

from orchestrator.fabric import Fabric, stalls
from orchestrator.hosts.clock import timekeeper
from orchestrator.hosts.cluster import Cluster
from orchestrator.process.answer_wait import Sight
from tests.orchestrator.running import DEADLINE_S, MESSAGE_BYTES, T1, connect, totals_when_placed
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


async def test_a_stopped_daemon_is_named_and_then_ended_so_that_the_others_go_on(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "STALL_WALL_S", 0.5)
    monkeypatch.setattr(stalls, "FENCE_WALL_S", 1.0)
    write = await connect(fabric)
    child = fabric.daemons.members[T1].child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    await totals_when_placed(fabric, MESSAGE_BYTES)
    assert [note["kind"] for note in fabric.journal.after(1)] == ["stalled", "fenced", "died"]
    assert {note["node"] for note in fabric.journal.after(1)} == {T1}
    [death] = fabric.unexpected_deaths()
    assert re.fullmatch(
        rf"{T1}: SIGKILL: its process had stopped fabric time for \d+ s, and was killed for that", death
    )


async def test_a_daemon_that_waits_for_the_cpu_is_named_and_not_ended(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "STALL_WALL_S", 0.2)
    monkeypatch.setattr(stalls, "FENCE_WALL_S", 0.5)
    monkeypatch.setattr(stalls, "WATCH_POLL_S", 0.1)
    looks = []

    def starved(pid: int) -> Sight:
        looks.append(pid)
        return Sight("S", 10**9 * len(looks))

    monkeypatch.setattr(stalls, "sight", starved)
    write = await connect(fabric)
    child = fabric.daemons.members[T1].child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    # Its instant may lie beyond the one at which time stands still.
    posted = asyncio.create_task(fabric.command("h000", "post_write", {**write, "wr_id": 1}, timeout_s=3 * DEADLINE_S))
    await eventually(lambda: len(looks) > 20, DEADLINE_S)
    os.kill(child.pid, signal.SIGCONT)
    await posted
    await totals_when_placed(fabric, MESSAGE_BYTES)
    assert {note["kind"] for note in fabric.journal.after(1)} == {"stalled"}
    assert set(looks) == {child.pid}


async def test_nobody_is_to_blame_while_hosts_do_not_hear_each_other(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "STALL_WALL_S", 0.1)
    monkeypatch.setattr(stalls, "FENCE_WALL_S", 0.5)
    monkeypatch.setattr(stalls, "WATCH_POLL_S", 0.1)
    monkeypatch.setattr(Cluster, "whole", False)
    write = await connect(fabric)
    child = fabric.daemons.members[T1].child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    # Its instant may lie beyond the one at which time stands still.
    posted = asyncio.create_task(fabric.command("h000", "post_write", {**write, "wr_id": 1}, timeout_s=3 * DEADLINE_S))

    def stands() -> float:
        stalled = fabric.time.stalled()
        return 0.0 if stalled is None else stalled[1]

    await eventually(lambda: stands() > 1.5, DEADLINE_S)
    monkeypatch.setattr(Cluster, "whole", True)
    monkeypatch.setattr(stalls, "FENCE_WALL_S", DEADLINE_S)
    await eventually(lambda: stands() < 1.0, DEADLINE_S)
    os.kill(child.pid, signal.SIGCONT)
    await posted
    await totals_when_placed(fabric, MESSAGE_BYTES)
    assert [note["kind"] for note in fabric.journal.after(1) if note["kind"] != "stalled"] == []
