"""What tests leave behind is found by its mark and ended, and nobody else is."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.document_blocks import ROOT
from tests.support.wait import eventually_blocking

SESSION = """
import os, subprocess, sys
from tests.support import leftovers
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
stranger = subprocess.Popen(sleeper, env={"PATH": os.environ["PATH"]}, **quiet)
leftovers.mark()
child = subprocess.Popen(sleeper, **quiet)
detach = f"import subprocess, sys; print(subprocess.Popen({sleeper}, **{quiet}).pid)"
detached = int(subprocess.run([sys.executable, "-c", detach], capture_output=True, check=True).stdout)
leftovers.end_left_behind()
print(stranger.pid, child.pid, detached, stranger.poll(), child.poll(), flush=True)
child.kill()
"""


@pytest.mark.integration
def test_a_detached_process_is_ended_and_children_and_strangers_are_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SESSION], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    stranger, _, detached, *alive = done.stdout.split()
    try:
        assert alive == ["None", "None"]
        assert f"left behind by tests: {detached} " in done.stderr
        eventually_blocking(lambda: not _runs(int(detached)), 10)
    finally:
        os.kill(int(stranger), signal.SIGKILL)


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
