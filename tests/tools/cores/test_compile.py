"""Compiling the cores: what it leaves behind, also without a compiler or with a broken one; edits are noticed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mrcfabric.cores import FOLDER, VARIABLE, read_manifest
from tools.cores import compile as compiling
from tools.cores.compile import CannotCompileError, c_compiler, check_tools, compile_into

ROOT = Path(__file__).parents[3]
MODULE = "from mrcfabric.other import FACTOR\n\n\ndef twice(value: int) -> int:\n    return FACTOR * value\n"
OTHER = "from typing import Final\n\nFACTOR: Final = 2\n"
SHOW = "from mrcfabric import CORES; from mrcfabric.module import twice; print(twice(21), CORES.run, CORES.detail)"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `mrcfabric` with one module to compile, which takes a constant from another."""
    package = tmp_path / "mrcfabric"
    package.mkdir()
    for name in ("__init__.py", "cores.py"):
        shutil.copy(ROOT / "mrcfabric" / name, package)
    (package / "module.py").write_text(MODULE)
    (package / "other.py").write_text(OTHER)
    (tmp_path / "pyproject.toml").write_text("[tool.mypy]\nstrict = true\n")
    # The runtime of mypyc is the same for every library: what the C compiler has made of it for ours is taken.
    if (ROOT / compiling.KEPT).is_dir():
        shutil.copytree(ROOT / compiling.KEPT, tmp_path / compiling.KEPT)
    monkeypatch.setattr(compiling, "compiled", lambda: [Path("mrcfabric/module.py")])
    return tmp_path


def shown(tree: Path) -> str:
    """What the module computes in a new process, and which cores ran."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, cwd=tree, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_without_a_compiler_the_reason_is_kept(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    manifest = compile_into(tree / "mrcfabric", tree)
    assert (manifest.why, manifest.modules) == ("no C compiler: no-such-compiler was not found", [])
    assert read_manifest(tree / "mrcfabric" / FOLDER) == manifest
    assert shown(tree) == "42 python no C compiler: no-such-compiler was not found"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'trial.c:1:10: fatal error: Python.h: No such file' >&2; exit 1", "fatal error: Python.h: No such file"),
        ("exit 7", "exit code 7"),
    ],
)
def test_a_broken_compiler_is_a_reason_too(tree: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str) -> None:
    broken = tree / "broken-cc"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    assert compile_into(tree / "mrcfabric", tree).why.endswith(why)
    with pytest.raises(CannotCompileError, match="broken-cc fails"):
        check_tools()


def test_the_environment_names_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{sys.executable} -v")
    assert c_compiler() == [sys.executable, "-v"]


@pytest.mark.slow
def test_what_was_compiled_runs_until_a_source_is_edited(tree: Path) -> None:
    try:
        check_tools()
    except CannotCompileError as error:
        pytest.skip(str(error))
    package = tree / "mrcfabric"
    assert shown(tree) == "42 python nothing is compiled; `make cores` compiles them"
    first = compile_into(package, tree)
    assert not first.why
    assert shown(tree).startswith("42 compiled 1 modules, ")
    (package / "module.py").write_text(MODULE.replace("FACTOR * value", "FACTOR * value + 1"))
    assert shown(tree).startswith("43 python mrcfabric/module.py has changed since it was compiled")
    (package / "module.py").write_text(MODULE)
    (package / "other.py").write_text(OTHER.replace("2", "4"))
    assert shown(tree).startswith("84 python mrcfabric/other.py has changed"), "a constant is compiled in"
    second = compile_into(package, tree)
    assert shown(tree).startswith("84 compiled 1 modules, ")
    assert [entry.name for entry in (package / FOLDER).iterdir() if entry.is_dir()] == [second.folder]
    assert compile_into(package, tree) == second, "nothing to do"
    (package / "other.py").write_text(OTHER.replace("Final = 2", 'Final[int] = "two"'))
    refused = compile_into(package, tree)
    assert refused.why.startswith("mypyc refuses: mrcfabric/other.py:3: error: Incompatible types")
    assert "python mypyc refuses" in shown(tree)
