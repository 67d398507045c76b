"""What every test of the project shares: how thoroughly properties are searched, how many run side by side, that what
is compiled is compiled once, that no program of the system is found unasked, and that no process is left."""

import gc
import mmap
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from mrcfabric.cores import COMPILED, CORES
from orchestrator.process import launcher
from tests.support import leftovers, packages
from tests.support.changed_cores import changes_a_core
from tests.support.rewritten_ahead import rewrite_ahead
from tests.support.turns_of_tests import in_turn, wall_s
from tests.support.warm_command import WARM
from tests.support.warm_fork_server import WARM_FORK_SERVER

# No deadline: how long one example takes says more about the neighbours on the machine than about the code.
_BASE = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
# What is tried depends on the test alone: `make test` says the same of the same code. `make test-long` searches on, but
# not in CI: a change must not be refused for what the code had before.
settings.register_profile("quick", _BASE, max_examples=30, derandomize=True)
settings.register_profile("search", _BASE, max_examples=200, derandomize="CI" in os.environ)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
settings.load_profile(PROFILE)
if PROFILE == "quick":
    # Hypothesis also tries the constants of all modules that are loaded, which depends on much more than the test; in a
    # fresh clone it parses two thousand files for them, in each worker.
    providers.is_local_module_file = lambda _path: False

# The tests start thousands of processes. Where the environment has them keep no bytecode, each would compile all that
# it imports; it takes a third of the CPU of a command.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell starts what is to run in the background with SIGINT ignored, and so would all that tests interrupt be.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# And `nohup` starts what it runs with SIGHUP ignored, which commands leave so.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

leftovers.mark()
_LINKS = packages.hide_programs()

launcher.subprocess = WARM_FORK_SERVER  # type: ignore[assignment]


LONG_WALL_S = 900
"""A long test computes for half a minute alone, and shares its CPU with whatever else the machine does."""


GARBAGE_LOOKED_FOR_AFTER = 20_000
"""So many objects more than before; 700 is Python's own figure, and costs the tests 6 % of their CPU."""

_COMPILED = pytest.mark.skip(reason="changes the cores, and compiled ones run (MRCFABRIC_CORES=python: pure Python)")


def pytest_configure(config: pytest.Config) -> None:
    """Before the workers begin."""
    rewrite_ahead(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A long test has a longer bound than others, whatever its module names; tests that change the cores need pure
    Python; where several workers share the tests that are chosen, those that take longest begin first."""
    for item in items:
        if CORES.run == COMPILED and item.get_closest_marker("pure"):
            item.add_marker(_COMPILED)
        if item.get_closest_marker("long"):
            named = item.get_closest_marker("timeout")
            item.add_marker(pytest.mark.timeout(max(named.args[0] if named else 0, LONG_WALL_S)))
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        items[:] = in_turn(items, workers, wall_s)


# Until all is collected next to nothing is garbage, and each collection of garbage walks through everything.
gc.disable()


def pytest_collection_finish() -> None:
    """The thousands of tests that were collected stay to the end: let no garbage collection walk through them again.

    A test makes thousands of objects and lets go most of them without the collector's help: it looks less often.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE_LOOKED_FOR_AFTER)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Also when the run was interrupted: no detached fabric stays."""
    leftovers.end_left_behind()


def pytest_unconfigure() -> None:
    """The folders that stand for the machine's on the PATH of the tests."""
    if _LINKS is not None:
        shutil.rmtree(_LINKS, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """At the end: what this machine could not try, and what it would take."""
    skipped = terminalreporter.stats.get("skipped", [])
    lines = packages.not_tried(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple))
    if lines:
        terminalreporter.section("not tried")
        for line in lines:
            terminalreporter.write_line(line)


GROWTH_BYTES = 3 << 25
"""Of a worker, until it looks for what is over."""
_tidy_bytes = [0]
"""What this worker held when it last had looked."""


def _resident_bytes() -> int:
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * mmap.PAGESIZE


@pytest.fixture(scope="module", autouse=True)
def asked_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a module asks for is on the PATH until its end."""
    packages.module_begins(tmp_path_factory.mktemp("asked"))
    yield
    packages.module_ends()
    if _resident_bytes() > _tidy_bytes[0] + GROWTH_BYTES:
        # A simulated fabric holds the memory of its NICs, and itself by cycles: a worker came to 1.8 GB with what was
        # over. What is left stays; and mypy, which compiles the cores in a test, has let go what was frozen before.
        gc.collect()
        gc.freeze()
        _tidy_bytes[0] = _resident_bytes()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two more than there are CPUs: tests with real processes wait much of their time, and leave their CPU to others.
    With three more, to read all tests once more takes longer than CPUs would be idle.

    Those that need pure Python are few, and each worker takes longer to read them than to run its share: no more for
    them. Nor for searches, which wait for nothing."""
    more = {"pure": 0, "hypothesis": 0}.get(config.getoption("markexpr").partition(" ")[0], 2)
    return len(os.sched_getaffinity(0)) + more


@pytest.fixture
def monkeypatch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Pytest's own, which refuses to change a class of the cores, as compiled ones do, but to a test that says so."""
    if request.node.get_closest_marker("pure") is None:
        set_attribute = monkeypatch.setattr

        def set_unless_core(target: Any, name: Any, *value: Any, **options: Any) -> None:
            assert not changes_a_core(target, name), (
                f"compiled cores do not take a {name} from outside: pytest.mark.pure"
            )
            set_attribute(target, name, *value, **options)

        monkeypatch.setattr = set_unless_core  # type: ignore[method-assign,assignment]
    return monkeypatch


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
    assert not _children() - before - WARM.pids - WARM_FORK_SERVER.pids, "the test left a process behind"
