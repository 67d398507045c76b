"""Rewrites the assertions of all tests before the workers of pytest-xdist begin, each file once.

pytest does so when it imports a test file, and keeps the result beside it. In a fresh clone nothing is kept, and all
workers collect the same files at the same time: each of them rewrites each file, which takes two thirds of the CPU time
of collecting. Here as many processes as there are CPUs rewrite a share each, and the workers find the results.

Calls three functions of pytest that are not part of its public interface, as its import hook does.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _read_pyc,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
    try_makedirs,
)


def rewrite_ahead(config: pytest.Config) -> None:
    """Rewrite what the workers of this process are about to import; nothing where it has none."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None) or sys.dont_write_bytecode:
        return
    waiting = [path for path in _files(config.args) if _read_pyc(path, _kept(path)) is None]
    processors = min(len(os.sched_getaffinity(0)), len(waiting))
    children = [_fork(config, waiting[number::processors]) for number in range(processors)]
    for child in children:
        os.waitpid(child, 0)


def _files(arguments: Iterable[str]) -> list[Path]:
    """The test files that the arguments of a command line name, without repetitions."""
    found = dict[Path, None]()
    for argument in arguments:
        path = Path(argument.partition("::")[0]).resolve()
        found.update(dict.fromkeys([path] if path.suffix == ".py" else sorted(path.rglob("test_*.py"))))
    return [path for path in found if path.is_file()]


def _kept(path: Path) -> Path:
    return get_cache_dir(path) / (path.stem + PYC_TAIL)


def _fork(config: pytest.Config, paths: list[Path]) -> int:
    """Have a child rewrite these files; returns its PID. What fails there fails again, and is said, at the import."""
    child = os.fork()
    if child:
        return child
    try:
        for path in paths:
            if try_makedirs(_kept(path).parent):
                source, code = _rewrite_test(path, config)
                _write_pyc(config.stash[assertstate_key], code, source, _kept(path))
    finally:
        os._exit(0)
