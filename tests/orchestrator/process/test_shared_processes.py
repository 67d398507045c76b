"""Daemons as children of a process that they share: born and buried one by one, and all together with the process."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchestrator.process.launcher import Child, Launcher
from orchestrator.process.shared_processes import Member, SharedProcesses
from tests.orchestrator.running import ROOT, is_gone
from tests.support.wait import eventually

pytestmark = pytest.mark.integration
ENTRY = "tests.orchestrator.entries:shared_process"
DEADLINE_S = 20.0


@pytest.fixture(autouse=True)
def children_find_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


class Shared:
    """Shared processes and the deaths that they were told of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dead: list[Child] = []
        self.launcher = Launcher()
        self.launcher.start("forkserver under test", [], folder / "forkserver.log")
        self.launcher.attach()
        self.launcher.on_death = self.dead.append
        self.processes = SharedProcesses(self.launcher)

    async def join(self, *names: str, process: str = "ground") -> list[Child]:
        members = [Member(name, {"be": name}, self.folder / f"{name}.log") for name in names]
        return await self.processes.join(process, ENTRY, "settings", members, self.folder / f"{process}.log")


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Shared]:
    one = Shared(tmp_path)
    yield one
    await one.launcher.stop()


async def test_each_is_a_child_of_its_own(shared: Shared) -> None:
    one, other = await shared.join("one", "other")
    [third] = await shared.join("third")
    assert one.pid == other.pid == third.pid
    assert len({one.life, other.life, third.life}) == 3
    assert await shared.processes.end(one)
    assert await one.ended == -signal.SIGKILL
    assert not await shared.processes.end(one)
    assert (other.alive, third.alive) == (True, True)
    assert [child.name for child in shared.dead] == ["one"]
    [elsewhere] = await shared.join("one", process="another")
    assert elsewhere.pid != one.pid


async def test_one_that_ends_by_itself_has_last_words_of_its_own(shared: Shared) -> None:
    (shared.folder / "refuses.log").write_text("refuses: its port is taken\n")
    one, refuses = await shared.join("one", "refuses")
    assert await refuses.ended == 2
    assert refuses.how_it_ended() == "exit code 2: refuses: its port is taken"
    assert one.alive


async def test_all_die_with_the_process_and_the_next_gets_a_new_one(shared: Shared) -> None:
    children = await shared.join("one", "other", "third")
    await shared.processes.end(children[0])
    await children[0].ended
    assert await shared.launcher.signal(children[1])  # of the whole process
    assert [await child.ended for child in children] == [-signal.SIGKILL] * 3
    await eventually(lambda: len(shared.dead) == 3 + 1, DEADLINE_S)
    assert not await shared.processes.end(children[2])
    [born] = await shared.join("one")
    assert born.alive
    assert born.pid != children[0].pid


async def test_a_process_that_fails_says_why_for_everybody_in_it(shared: Shared) -> None:
    one, other = await shared.join("one", "fails")
    assert [await child.ended for child in (one, other)] == [1, 1]
    assert one.how_it_ended() == other.how_it_ended() == "exit code 1: RuntimeError: broken on purpose"


async def test_a_stopped_process_does_not_hold_the_fork_server(shared: Shared) -> None:
    [one] = await shared.join("one")
    os.kill(one.pid, signal.SIGSTOP)
    assert await shared.processes.end(one)
    [other] = await shared.join("other", process="another")
    assert other.alive
    assert one.alive
    os.kill(one.pid, signal.SIGCONT)
    assert await one.ended == -signal.SIGKILL


async def test_everybody_goes_with_the_fork_server(shared: Shared) -> None:
    one, other = await shared.join("one", "other")
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    shared.launcher.on_lost = lost.set_result
    os.kill(shared.launcher.pid, signal.SIGKILL)
    assert await one.ended == await other.ended == -signal.SIGKILL
    assert "SIGKILL" in await lost
    await eventually(lambda: is_gone(one.pid), DEADLINE_S)
