"""The fork server and its client: births, deaths, descriptors, and that nothing outlives anybody."""

import asyncio
import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgpack
import pytest

from orchestrator.process.launcher import Child, Launcher, ProcessFailedError, last_line, where_logged
from tests.orchestrator.running import ROOT, is_gone
from tests.support.wait import eventually, eventually_blocking

pytestmark = pytest.mark.integration
ENTRIES = "tests.orchestrator.entries"
DEADLINE_S = 20.0


@pytest.fixture(autouse=True)
def children_find_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture
async def launcher(tmp_path: Path) -> AsyncIterator[Launcher]:
    one = Launcher()
    one.start("forkserver under test", [], tmp_path / "forkserver.log")
    one.attach()
    yield one
    await one.stop()


async def read_when_ready(fd: int) -> bytes:
    await eventually(lambda: select.select([fd], [], [], 0)[0], DEADLINE_S)
    return os.read(fd, 65536)


def test_a_fork_server_that_may_not_start_is_told_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", refused)
    with pytest.raises(ProcessFailedError, match=r"^fork server: BlockingIOError: .*; raise the limit of processes"):
        Launcher().start("forkserver under test")


def refused(*_arguments: object, **_more: object) -> None:
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


async def test_a_child_gets_arguments_and_descriptors(launcher: Launcher) -> None:
    read_end, write_end = os.pipe()
    arguments = {"big": b"x" * 300_000, "numbers": {1: [2, 3]}}
    child = await launcher.spawn("one", f"{ENTRIES}:echo", {"numbers": {1: [2, 3]}}, fds=[write_end])
    said = msgpack.unpackb(await read_when_ready(read_end), strict_map_key=False)
    assert said == {"arguments": {"numbers": {1: [2, 3]}}, "pid": child.pid, "parent": launcher.pid}
    assert await child.ended == 0
    # Arguments have no size limit of their own.
    child = await launcher.spawn("two", f"{ENTRIES}:exit_with", 0)
    child = await launcher.spawn("three", f"{ENTRIES}:sleep", arguments)
    assert await launcher.signal(child)
    assert await child.ended == -signal.SIGKILL
    assert not await launcher.signal(child)
    os.close(read_end)
    os.close(write_end)


async def test_deaths_are_reported_with_their_status_and_last_words(launcher: Launcher, tmp_path: Path) -> None:
    died: list[Child] = []
    launcher.on_death = died.append
    log = tmp_path / "child.log"
    child = await launcher.spawn("h007", f"{ENTRIES}:exit_with", 3, log=log)
    assert await child.ended == 3
    assert not child.alive
    assert child.how_it_ended() == "exit code 3: leaving with 3"
    broken = await launcher.spawn("h008", f"{ENTRIES}:fail", None, log=log)
    assert await broken.ended == 1
    assert last_line(log) == "RuntimeError: broken on purpose"
    missing = await launcher.spawn("h009", f"{ENTRIES}:nothing_of_the_kind", None, log=log)
    assert await missing.ended == 1
    assert [one.name for one in died] == ["h007", "h008", "h009"]


def test_a_log_is_named_when_it_says_something(tmp_path: Path) -> None:
    log = tmp_path / "h007.log"
    assert where_logged(None) == where_logged(log) == ""
    log.touch()
    assert where_logged(log) == ""
    log.write_text("h007 event=started\n")
    assert where_logged(log) == f"; its log: {log}"


async def test_a_hundred_children_at_once(launcher: Launcher) -> None:
    children = await asyncio.gather(
        *(launcher.spawn(f"h{number:03d}", f"{ENTRIES}:exit_with", number % 3) for number in range(100))
    )
    assert [await child.ended for child in children] == [number % 3 for number in range(100)]
    assert not launcher.children


async def test_children_stop_by_themselves_when_the_pipe_closes(launcher: Launcher) -> None:
    read_end, write_end = os.pipe()
    (alive,) = await launcher.hold([launcher.alive_read])
    child = await launcher.spawn("one", f"{ENTRIES}:wait_for_agent", alive, fds=[write_end])
    assert await read_when_ready(read_end) == b"ready"
    await launcher.stop()
    assert await child.ended == 0
    assert is_gone(launcher.pid)
    os.close(read_end)
    os.close(write_end)


async def test_the_death_of_the_fork_server_takes_everything_and_is_told(launcher: Launcher) -> None:
    lost: list[str] = []
    launcher.on_lost = lost.append
    child = await launcher.spawn("one", f"{ENTRIES}:sleep", None)
    stopped = await launcher.spawn("two", f"{ENTRIES}:sleep", None)
    await launcher.signal(stopped, signal.SIGSTOP)
    os.kill(launcher.pid, signal.SIGKILL)
    assert await child.ended == -signal.SIGKILL
    await eventually(lambda: is_gone(child.pid) and is_gone(stopped.pid), DEADLINE_S)
    assert lost == ["the fork server has ended (SIGKILL)"]
    with pytest.raises(ProcessFailedError, match="the fork server has ended"):
        await launcher.spawn("three", f"{ENTRIES}:sleep", None)


async def test_a_module_that_cannot_be_loaded_is_one_error(launcher: Launcher) -> None:
    with pytest.raises(ProcessFailedError, match="ModuleNotFoundError: No module named 'no_such_module'"):
        await launcher.preload(["no_such_module"])
    await launcher.preload(["json"])


AGENT = """
import asyncio, sys, os
from orchestrator.process.launcher import Launcher
async def run():
    launcher = Launcher()
    launcher.start("forkserver under test")
    launcher.attach()
    child = await launcher.spawn("one", "tests.orchestrator.entries:sleep", None)
    print(os.getpid(), launcher.pid, child.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(run())
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_a_killed_agent_takes_everything_with_it(stopped: bool) -> None:
    agent = subprocess.Popen([sys.executable, "-c", AGENT], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    _, server, child = map(int, agent.stdout.readline().split())
    if stopped:
        os.kill(child, signal.SIGSTOP)
        os.kill(server, signal.SIGSTOP)
    agent.kill()
    agent.wait()
    agent.stdout.close()
    eventually_blocking(lambda: is_gone(server) and is_gone(child), DEADLINE_S)
