"""What every test of the project shares: how thoroughly properties are searched, how many run side by side, that what
is compiled is compiled once, and that no child process is left."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# No deadline: how long one example takes says more about the neighbours on the machine than about the code.
_BASE = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _BASE, max_examples=50)
settings.register_profile("ci", _BASE, max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# The tests start thousands of processes. Where the environment has them keep no bytecode, each would compile all that
# it imports; it takes a third of the CPU of a command.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are CPUs: a test with real processes waits now and then, and leaves its CPU to another."""
    return len(os.sched_getaffinity(0)) + 1


def _children() -> set[int]:
    """Living or unreaped children of this process."""
    with open(f"/proc/self/task/{os.getpid()}/children") as listing:
        return {int(pid) for pid in listing.read().split()}


@pytest.fixture(autouse=True)
def no_process_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """An integration test ends the processes that it started."""
    if request.node.get_closest_marker("integration") is None:
        yield
        return
    before = _children()
    yield
    assert not _children() - before, "the test left a process behind"
