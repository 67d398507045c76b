"""How far daemons have been told of their lives: also one that hears nobody for longer than anybody waits."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

import pytest

from mrcfabric.control import NoAnswerError
from mrcfabric.units import NEVER
from orchestrator.fabric import Fabric
from orchestrator.fabric.fault_delivery import SCRIPT_COMMANDS
from orchestrator.faults.fault import Fault, Window, once
from orchestrator.hosts.cluster import Cluster
from orchestrator.process import answer_wait
from tests.orchestrator.running import DEADLINE_S, carrier
from tests.support.wait import eventually, eventually_true

pytestmark = pytest.mark.integration


async def test_a_daemon_that_does_not_answer_is_told_as_soon_as_it_does(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_wait, "BOUND_WALL_S", 0.2)
    monkeypatch.setattr(answer_wait, "SHARE_WALL_S", 0.0)
    nic, plane = "h001", 1
    child = fabric.daemons.members[nic].child
    assert child is not None
    soon_ns = fabric.soon_ns()
    starts = range(soon_ns, soon_ns + SCRIPT_COMMANDS * 2_000, 2_000)  # every one of them is several commands
    windows = [*(Window(start_ns, start_ns + 1_000, {}) for start_ns in starts), Window(starts.stop, NEVER, {})]
    fault = Fault("dark", "nic_port_down", (f"{nic}:{plane}",), tuple(windows))
    works: dict[int, Callable[[], Awaitable[object]]] = {
        0: lambda: fabric.inject(fault),
        1: lambda: fabric.heal("dark"),
    }
    for lit, work in works.items():
        os.kill(child.pid, signal.SIGSTOP)
        with pytest.raises(
            NoAnswerError, match=f"{nic} has not answered for 0 s: it is stopped .*; it is told as soon as it does"
        ):
            await work()
        os.kill(child.pid, signal.SIGCONT)

        async def seen(lit: int = lit) -> bool:
            return await carrier(fabric, nic, plane) == lit

        await eventually_true(seen, DEADLINE_S)
    await eventually(lambda: fabric.faults() == [], DEADLINE_S)
    # While hosts do not hear each other, whoever breaks something waits as time does.
    monkeypatch.setattr(Cluster, "whole", False)
    os.kill(child.pid, signal.SIGSTOP)
    breaking = asyncio.create_task(fabric.inject(once("nic_port_down", f"{nic}:{plane}", at_ns=fabric.soon_ns())))
    assert not (await asyncio.wait([breaking], timeout=1.0))[0]
    os.kill(child.pid, signal.SIGCONT)
    await breaking
    assert [note for note in fabric.journal.after(0) if note["kind"] == "refused"] == []
