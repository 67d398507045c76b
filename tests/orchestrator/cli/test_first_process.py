"""The first process of a PID namespace, as a container has it: exit codes, signals, and nobody left a zombie."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from orchestrator.cli.first_process import stand_in_front
from tests.support.namespaces import privileged
from tests.support.packages import program

FRONT = """
import os, signal, sys, time
from orchestrator.cli.first_process import stand_in_front
def command():
{body}
sys.exit(stand_in_front(command))
"""
# A child of a child that ends before its own: whose parent has gone, when it ends in its turn.
ORPHAN = """
    read, write = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            os.read(read, 1)
            os._exit(0)
        os._exit(0)
    os.wait()
    os.write(write, b".")
    end = time.monotonic() + 20
    while len([name for name in os.listdir("/proc") if name.isdigit()]) > 2 and time.monotonic() < end:
        time.sleep(0.002)
    print(os.getppid(), sorted(int(name) for name in os.listdir("/proc") if name.isdigit()) == [1, os.getpid()])
    return 3
"""
WAITING = """
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(7))
    print("ready", flush=True)
    signal.pause()
"""
KILLED = """
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def alone() -> None:
    privileged()


def first(body: str) -> "subprocess.Popen[str]":
    """A program that is the first process of its namespace."""
    code = FRONT.format(body=body)
    words = [program("unshare"), "--pid", "--fork", "--kill-child", "--mount-proc", "--", sys.executable, "-c", code]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def waiting() -> "Iterator[subprocess.Popen[str]]":
    with first(WAITING) as process:
        yield process
        process.kill()


def test_orphans_are_buried_and_the_exit_code_is_the_commands() -> None:
    with first(ORPHAN) as process:
        said, _ = process.communicate(timeout=30)
    assert said.split() == ["1", "True"]
    assert process.returncode == 3


def test_signals_are_passed_on(waiting: "subprocess.Popen[str]") -> None:
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "ready\n"
    with open(f"/proc/{waiting.pid}/task/{waiting.pid}/children", encoding="ascii") as children:
        (inside,) = map(int, children.read().split())
    os.kill(inside, signal.SIGTERM)
    assert waiting.wait(timeout=30) == 7


def test_a_command_that_is_killed_is_reported_as_by_a_shell() -> None:
    with first(KILLED) as process:
        assert process.wait(timeout=30) == 128 + signal.SIGKILL


def test_elsewhere_the_command_runs_in_this_process() -> None:
    found: list[int] = []

    def command() -> int:
        found.append(os.getpid())
        return 5

    assert stand_in_front(command) == 5
    assert found == [os.getpid()]
