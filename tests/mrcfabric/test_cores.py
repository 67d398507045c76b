"""The choice of the cores: the compiled modules only where they were made of the very sources that lie here."""

import importlib
import json
import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from mrcfabric.cores import (
    COMPILED,
    CORES,
    FOLDER,
    FORCED,
    MANIFEST,
    PYTHON,
    VARIABLE,
    Cores,
    Manifest,
    digest,
    judge,
    read_manifest,
)

ROOT = Path(__file__).parents[2]
SOURCE, OTHER = "mrcfabric/egress.py", "nicd/core/nic.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with two sources and compiled modules that were made of them."""
    for name in (SOURCE, OTHER):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}\n")
    put(tmp_path, made(tmp_path))
    return tmp_path


def made(root: Path, abi: str = EXTENSION_SUFFIXES[0], why: str = "") -> Manifest:
    sources = {name: digest((root / name).read_bytes()) for name in (SOURCE, OTHER)}
    return Manifest(abi, "gcc 12.2.0", "b0", ["mrcfabric.egress", "nicd.core.nic"], sources, why)


def put(root: Path, manifest: Manifest) -> None:
    folder = root / "mrcfabric" / FOLDER
    (folder / manifest.folder).mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).write_text(json.dumps(manifest._asdict()))


def test_what_was_compiled_of_these_sources_runs(tree: Path) -> None:
    cores, manifest = judge(tree, "")
    assert cores == (COMPILED, "2 modules, gcc 12.2.0")
    assert manifest == made(tree)
    assert cores.line == "compiled (2 modules, gcc 12.2.0)"
    assert judge(tree, COMPILED)[0] == cores


@pytest.mark.parametrize("name", [SOURCE, OTHER])
def test_an_edited_source_runs_and_with_it_all_others(tree: Path, name: str) -> None:
    before = (tree / name).stat()
    text = (tree / name).read_text()
    (tree / name).write_text(text.replace("#", "%"))
    os.utime(tree / name, ns=(before.st_atime_ns, before.st_mtime_ns))  # of the same size and age
    cores, manifest = judge(tree, "")
    assert cores.run == PYTHON
    assert manifest is None
    assert cores.line == f"pure Python ({name} has changed since it was compiled; `make cores` compiles them)"
    (tree / name).write_text(text)
    assert judge(tree, "")[0].run == COMPILED, "it is again what was compiled"


def test_a_source_that_has_gone_is_a_change(tree: Path) -> None:
    (tree / OTHER).unlink()
    assert f"{OTHER} has changed" in judge(tree, "")[0].detail


def test_pure_python_can_be_asked_for(tree: Path) -> None:
    assert judge(tree, PYTHON) == (Cores(PYTHON, FORCED), None)
    assert FORCED == "MRCFABRIC_CORES=python"


def test_without_compiled_modules_it_says_why(tree: Path) -> None:
    folder = tree / "mrcfabric" / FOLDER
    put(tree, made(tree, abi=".cpython-27-vax.so"))
    assert "compiled for another Python (.cpython-27-vax.so)" in judge(tree, "")[0].line
    put(tree, made(tree, why="no C compiler: cc was not found"))
    assert judge(tree, "")[0].line == "pure Python (no C compiler: cc was not found)"
    put(tree, made(tree))
    (folder / "b0").rmdir()
    assert "the compiled modules have gone" in judge(tree, "")[0].line
    for text in ("", "{", "[]", '{"abi": 1}'):
        (folder / MANIFEST).write_text(text)
        assert read_manifest(folder) is None
        assert judge(tree, "")[0].line == "pure Python (nothing is compiled; `make cores` compiles them)"


def test_compiled_modules_that_are_asked_for_must_run(tree: Path) -> None:
    (tree / SOURCE).write_text("# edited\n")
    with pytest.raises(ValueError, match=r"^MRCFABRIC_CORES: there are no compiled cores to run: mrcfabric/egress\.py"):
        judge(tree, COMPILED)


def test_what_runs_here_is_told() -> None:
    assert CORES.record() == {"run": CORES.run, "detail": CORES.detail}
    assert CORES.run in (COMPILED, PYTHON)
    egress = importlib.import_module("mrcfabric.egress")
    assert str(egress.__file__).endswith(".py") == (CORES.run == PYTHON)


@pytest.mark.parametrize("program", [["-m", "orchestrator.cli", "--version"], ["-m", "nicd"], ["-c", "import switchd"]])
def test_an_unknown_value_is_one_line_and_starts_nothing(program: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *program], env={**os.environ, VARIABLE: "fast"}, cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert not done.stdout
    assert done.stderr == "MRCFABRIC_CORES: 'fast' is not known (one of python, compiled, or not set)\n"


def test_the_choice_holds_for_every_process_below() -> None:
    """One variable of the environment, which daemons inherit."""
    program = "from mrcfabric import CORES; import nicd.core.nic as nic; print(CORES.run, nic.__file__.endswith('.py'))"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, VARIABLE: PYTHON}, cwd=ROOT, capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "python True\n"
