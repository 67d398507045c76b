"""What CI makes of a test that failed: a few that pass alone are named, whatever fails twice is a failure."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checks.source import ROOT
from tests.support.second_try import FAILED, FEW

TESTS = """
import os
import pytest

def test_passes():
    pass

def test_fails():
    assert False

@pytest.mark.pure
def test_wants_pure_python():
    assert os.environ["MRCFABRIC_CORES"] == "python"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    pure\n")
    (tmp_path / FAILED).parent.mkdir(parents=True)
    return tmp_path


def tried(project: Path, *failed: str) -> subprocess.CompletedProcess[str]:
    (project / FAILED).write_text(json.dumps({f"test_it.py::{name}": True for name in failed}))
    return again(project)


def again(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tests" / "support" / "second_try.py")]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120)


def test_a_test_that_passes_alone_is_named_and_refuses_nothing(project: Path) -> None:
    done = tried(project, "test_passes", "test_wants_pure_python")
    assert done.returncode == 0, done.stdout
    assert "UNSTABLE: test_it.py::test_passes failed" in done.stdout
    assert "UNSTABLE: test_it.py::test_wants_pure_python failed" in done.stdout


def test_a_test_that_fails_twice_is_a_failure(project: Path) -> None:
    done = tried(project, "test_passes", "test_fails")
    assert done.returncode == 1
    assert "UNSTABLE" not in done.stdout


def test_many_failures_have_no_second_try(project: Path) -> None:
    done = tried(project, *(f"test_{number}" for number in range(FEW + 1)))
    assert done.returncode == 1
    assert f"{FEW + 1} tests failed" in done.stdout


def test_a_failure_outside_of_the_tests_has_no_second_try(project: Path) -> None:
    done = again(project)
    assert done.returncode == 1
    assert "something else" in done.stdout
