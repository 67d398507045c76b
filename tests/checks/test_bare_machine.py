"""Tests that run programs of the system hold where there are none of them, and where the user is not root."""

import ast
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checks import source
from tests.checks.source import ROOT
from tests.support import packages
from tests.support.packages import NEEDS_ROOT, bare_path, not_tried, package_of, program

ASKING = {"tests.support.packages", "tests.support.namespaces"}
WALL_S = 1500
CHILD = "from tests.support.packages import program; program('{name}')"


@functools.cache
def imported(path: Path) -> set[str]:
    """Every module of the tests that a file imports, the conftest of its folder included."""
    found = {".".join((*path.relative_to(ROOT).parts[:-1], "conftest"))}
    for node in ast.walk(source.tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


def asking_files() -> list[str]:
    """The files with a test that asks for a program or for root, itself or through what it imports."""
    files = {path: path.relative_to(ROOT) for path in source.python_files() if path.is_relative_to(ROOT / "tests")}
    modules = {path: ".".join(inside.with_suffix("").parts) for path, inside in files.items()}
    # The conftest above all of them asks for nothing, it only hides.
    asking = set(ASKING)
    while more := {modules[path] for path in files if imported(path) & asking} - asking - {"tests.conftest"}:
        asking |= more
    return [str(inside) for path, inside in files.items() if modules[path] in asking and path.name.startswith("test_")]


def test_no_listed_program_is_found_unasked() -> None:
    for name in package_of():
        assert subprocess.run(["sh", "-c", f"command -v {name}"], check=False, capture_output=True).returncode, name


def test_who_asks_in_a_process_of_its_own_skips_nothing() -> None:
    words = [sys.executable, "-c", CHILD.format(name="tshark")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "LookupError: tshark is not on the PATH: the test that starts" in done.stderr


def test_what_a_test_asks_for_is_found_by_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = tmp_path / "machine"
    machine.mkdir()
    for name in ("tshark", "other"):
        (machine / name).write_text(f"#!/bin/sh\necho {name}\n")
        (machine / name).chmod(0o755)
    path = bare_path(str(machine), tmp_path / "links")
    assert subprocess.run(["other"], env={"PATH": path}, capture_output=True, check=True).stdout == b"other\n"
    asked = tmp_path / "asked"
    asked.mkdir()
    monkeypatch.setattr(packages, "_asked", [asked])
    monkeypatch.setenv("PATH", f"{asked}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(packages.WHOLE, str(machine))
    assert program("tshark") == machine / "tshark"
    assert subprocess.run([sys.executable, "-c", CHILD.format(name="tshark")], cwd=ROOT, check=False).returncode == 0


def test_the_end_says_what_was_not_tried_and_what_installs_it() -> None:
    reasons = ["Skipped: sshd is not installed"] * 3 + [f"Skipped: {NEEDS_ROOT}: makes namespaces", "Skipped: other"]
    said, how = not_tried(reasons)
    assert said == "Not tried here: 3 for want of sshd, 1 that need root."
    assert how.startswith("To try them, as root: ")
    assert how.endswith("make test")
    assert not_tried(["Skipped: other"]) == []


@pytest.mark.long(30)
@pytest.mark.integration
@pytest.mark.timeout(WALL_S + 60)
def test_nothing_fails_on_a_bare_machine_for_a_user_who_is_not_root() -> None:
    """The tests that ask for programs, with none of them on the PATH, in a user namespace without privileges."""
    before = [] if os.geteuid() else [str(program("unshare")), "--user", "--map-user=65534", "--map-group=65534"]
    if before and subprocess.run([*before, "true"], check=False).returncode:
        pytest.skip("user namespaces are not allowed here")
    # The child takes the PATH of this test for the machine's.
    environment = {key: value for key, value in os.environ.items() if key not in {"CI", packages.WHOLE}}
    environment["PATH"] = packages.unasked_path()
    files = asking_files()
    # Beside the workers that run other tests meanwhile: more would only read all of the files once more each.
    words = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not long", "-p", "no:cacheprovider", *files]
    done = subprocess.run(
        [*before, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WALL_S, check=False
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    assert int(re.findall(r"(\d+) skipped", done.stdout)[-1]) > 0
    assert f"that {NEEDS_ROOT.replace('needs', 'need')}" in done.stdout
