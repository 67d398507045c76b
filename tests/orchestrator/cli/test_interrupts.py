"""Ctrl-C at the worst moments of a command, once and twice: no traceback, and always the same exit code."""

import subprocess
import sys

import pytest

from orchestrator.cli.interrupts import follows_interrupt

COMMAND = """
import asyncio, os, signal, sys, time, weakref
from orchestrator.cli import __main__, main
from orchestrator.cli.interrupts import heed_interrupts

def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)

async def work():
    pass

def command():
    heed_interrupts()
{body}

main.build_app = lambda: command
sys.exit(__main__.main())
"""
ONCE = """
    interrupt()
"""
WHILE_THE_FIRST_ENDS_IT = """
    try:
        interrupt()
    finally:
        interrupt()
"""
WHILE_ITS_CODE_IS_READ = """
    try:
        interrupt()
    except KeyboardInterrupt:
        main.EXIT_INTERRUPTED = type("Asked", (int,), {"__eq__": interrupt, "__hash__": int.__hash__})(130)
        sys.exit(130)
"""
NOT_BEGUN = """
    def begin(coroutine):
        try:
            interrupt()
        except KeyboardInterrupt:
            sys.exit(130)
    begin(work())
"""
LOST = """
    class Thing:
        pass
    thing = Thing()
    watch = weakref.ref(thing, interrupt)  # nothing can be raised in there
    del thing
    time.sleep(30)
"""
CLEANING_UP = """
    try:
        interrupt()
    finally:
        raise RuntimeError("cannot close\\n that")
"""


@pytest.mark.parametrize("body", [ONCE, WHILE_THE_FIRST_ENDS_IT, WHILE_ITS_CODE_IS_READ, NOT_BEGUN, LOST, CLEANING_UP])
def test_no_ctrl_c_leaves_a_traceback(body: str) -> None:
    words = [sys.executable, "-c", COMMAND.replace("{body}", body)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    said = "mrcfabric: interrupted: cannot close\\n that\n" if body == CLEANING_UP else ""
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)


def test_what_cannot_be_raised_is_printed_as_ever_if_it_is_no_ctrl_c() -> None:
    body = LOST.replace("interrupt)", "lambda _: 1 / 0)").replace("30", "0")
    words = [sys.executable, "-c", COMMAND.replace("{body}", body)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert "ZeroDivisionError" in done.stderr


def test_an_error_follows_an_interrupt_however_far_behind() -> None:
    assert not follows_interrupt(ValueError())

    def end() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            try:
                raise ValueError
            finally:
                raise OSError

    with pytest.raises(OSError) as raised:  # noqa: PT011 - without any message
        end()
    assert follows_interrupt(raised.value)
