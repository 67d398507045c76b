"""Building a wheel: mypy is asked for only where it can be of use, and without a compiler the sources go in alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mrcfabric.cores import FOLDER, read_manifest

ROOT = Path(__file__).parents[3]
NEEDED = "from tools.cores import backend; print(backend.get_requires_for_build_wheel())"


def run(*words: str, compiler: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env={**os.environ, "CC": compiler}, capture_output=True, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.parametrize(("compiler", "asked"), [("no-such-compiler", False), (sys.executable, True)])
def test_mypy_is_asked_for_where_a_compiler_is(compiler: str, asked: bool) -> None:
    assert ("mypy" in run("-c", NEEDED, compiler=compiler).splitlines()[-1]) == asked


@pytest.mark.slow
def test_without_a_compiler_what_is_built_is_pure_and_says_why(tmp_path: Path) -> None:
    run("setup.py", "--quiet", "build_py", f"--build-lib={tmp_path}", compiler="no-such-compiler")
    assert (tmp_path / "nicd/core/nic.py").read_bytes() == (ROOT / "nicd/core/nic.py").read_bytes()
    manifest = read_manifest(tmp_path / "mrcfabric" / FOLDER)
    assert manifest is not None
    assert manifest.why == "no C compiler: no-such-compiler was not found"
    assert not list(tmp_path.rglob("*.so"))
