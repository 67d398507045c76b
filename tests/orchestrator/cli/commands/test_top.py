"""`mrcfabric top` on a fabric that runs: lines where there is no terminal, a screen where there is one."""

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, ask

pytestmark = pytest.mark.integration


async def test_plain_lines_without_a_terminal(served: Fabric) -> None:
    folder = served.folder.path
    said = await asyncio.to_thread(ask, folder, "top", "-n", "2", "--every", "100ms", "--run-dir", str(folder))
    lines = said.splitlines()
    assert len(lines) == 2
    assert all("Gb/s" in line and "valid" in line for line in lines)


class Screen:
    """`mrcfabric top` on a terminal of our own."""

    def __init__(self, folder: Path) -> None:
        self.ours, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        asked = [sys.executable, "-m", "orchestrator.cli", "top", "--every", "200ms", "--run-dir", str(folder)]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
        self.child = subprocess.Popen(
            asked, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, env=environment, start_new_session=True
        )
        self.seen = b""

    def until(self, shown: bytes) -> None:
        """Read until this is there."""
        end = time.monotonic() + DEADLINE_S
        while shown not in self.seen:
            ready, _, _ = select.select([self.ours], [], [], max(0.0, end - time.monotonic()))
            assert ready, self.seen
            self.seen += os.read(self.ours, 65536)

    def ended(self) -> int:
        """Its exit code, when it has given the terminal back as it was."""
        self.until(b"\x1b[?1049l")
        code = self.child.wait(DEADLINE_S)
        assert termios.tcgetattr(self.theirs) == self.before
        return code

    def close(self) -> None:
        """Whatever has become of it."""
        self.child.kill()
        self.child.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def screen(detached: Path) -> Iterator[Screen]:
    one = Screen(detached / "out" / "small")
    one.until(b"q quit")
    yield one
    one.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_and_the_terminal_is_as_before(screen: Screen, number: int, code: int) -> None:
    screen.child.send_signal(number)
    assert screen.ended() == code


def test_it_ends_with_the_fabric(screen: Screen, detached: Path) -> None:
    ask(detached, "down")
    assert screen.ended() == 0
    screen.until(b"the fabric has ended")


def test_an_agent_that_hangs_is_told_of_and_keys_still_work(screen: Screen, detached: Path) -> None:
    pid = int(json.loads(ask(detached, "status", "--json"))["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        screen.until(b"NO ANSWER")
        os.write(screen.ours, b"q")
        assert screen.ended() == 0
    finally:
        os.kill(pid, signal.SIGCONT)
