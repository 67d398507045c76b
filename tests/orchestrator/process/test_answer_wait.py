"""Waiting for a process by what is seen of it: asleep, stopped, busy, elsewhere; our own pauses count for nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from orchestrator.process import answer_wait
from orchestrator.process.answer_wait import AnswerWait, OwnTime, bound_s, done_within, sight
from tests.support.wait import eventually_blocking

DEADLINE_S = 30.0
SLEEPS, COMPUTES = "import time; print(1, flush=True); time.sleep(600)", "print(1, flush=True)\nwhile True: pass"


@pytest.fixture
def child(request: pytest.FixtureRequest) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", request.param], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, wall_s in (("SILENT_WALL_S", 0.2), ("UNSEEN_WALL_S", 0.3), ("BOUND_WALL_S", 0.8), ("TICK_WALL_S", 0.05)):
        monkeypatch.setattr(answer_wait, name, wall_s)
    monkeypatch.setattr(answer_wait, "SHARE_WALL_S", 0.0)


def waited(pid: int | None) -> AnswerWait:
    """One wait to its end."""
    one = AnswerWait(1)
    eventually_blocking(lambda: one.ended([pid]), DEADLINE_S)
    return one


@pytest.mark.parametrize("child", [SLEEPS], indirect=True)
def test_who_could_answer_is_given_up_first_and_who_is_stopped_at_the_bound(child: int) -> None:
    began = time.monotonic()
    assert "it sleeps" in waited(child).why()
    os.kill(child, signal.SIGSTOP)
    began = time.monotonic()
    assert "it is stopped" in waited(child).why()
    assert time.monotonic() - began >= 0.8


@pytest.mark.parametrize("child", [COMPUTES], indirect=True)
def test_who_computes_is_waited_for_until_the_bound(child: int) -> None:
    began = time.monotonic()
    assert "it computes" in waited(child).why()
    assert time.monotonic() - began >= 0.8


def test_nothing_is_known_of_a_process_elsewhere_and_nobody_waits_for_one_that_is_gone() -> None:
    assert "another host" in waited(None).why()
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    assert sight(int(done.stdout)) is None
    assert "it sleeps" in waited(int(done.stdout)).why()


@pytest.mark.parametrize("child", [SLEEPS], indirect=True)
def test_a_sign_of_life_begins_the_silence_anew(child: int) -> None:
    one = AnswerWait(1)
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        assert not one.ended([child])
        one.heard()
        time.sleep(0.01)
    eventually_blocking(lambda: one.ended([child]), DEADLINE_S)


def test_the_bound_grows_with_the_processes_that_share_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_wait, "SHARE_WALL_S", 1.0)
    assert bound_s(600) - bound_s(0) == 600 / len(os.sched_getaffinity(0))


def test_a_pause_of_our_own_counts_as_two_ticks_at_most() -> None:
    own = OwnTime()
    time.sleep(0.3)
    assert own.tick() == pytest.approx(0.1)


async def test_what_is_done_during_a_pause_of_our_own_is_found_done() -> None:
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(done_within(work, 0.2))
    await asyncio.sleep(0)
    time.sleep(0.5)  # noqa: ASYNC251 - as if we had been stopped
    work.set_result(None)
    assert await waiting
    assert not await done_within(asyncio.get_running_loop().create_future(), 0.05)
