"""Wheels of what runs here."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import orchestrator
from mrcfabric import cores
from mrcfabric.cores import COMPILED, CORES, FORCED, PYTHON, Cores
from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.wheel import packages_of, requirements_of, wheel_of

pytestmark = pytest.mark.slow


def test_a_wheel_has_the_code_that_runs_here() -> None:
    wheel = wheel_of("mrcfabric")
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as archive:
        names = archive.namelist()
        assert archive.read("orchestrator/__init__.py") == Path(orchestrator.__file__).read_bytes()
    assert wheel.name == f"mrcfabric-{wheel.version}-py3-none-any.whl"
    assert {"mrcfabric", "nicd", "switchd", "orchestrator"} <= {name.split("/")[0] for name in names}
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]
    assert any(text.startswith("msgpack") for text in wheel.requirements)
    assert not any(text.startswith("pytest") for text in wheel.requirements)


@pytest.mark.parametrize("run", [COMPILED, PYTHON])
def test_a_copy_of_it_runs_the_cores_that_run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str) -> None:
    if run != CORES.run:
        # The other kind cannot be made to run here; that its files are left out can be seen.
        if run == COMPILED:
            pytest.skip("nothing is compiled here")
        monkeypatch.setattr(cores, "CORES", Cores(PYTHON, FORCED))
    with zipfile.ZipFile(io.BytesIO(wheel_of("mrcfabric").content)) as archive:
        archive.extractall(tmp_path)
    said = subprocess.run(
        [sys.executable, "-P", "-c", "from mrcfabric.cores import CORES, __file__; print(CORES.run, __file__)"],
        env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.split() == [run, str(tmp_path / "mrcfabric/cores.py")]


def test_the_same_code_gives_the_same_bytes() -> None:
    one, other = wheel_of("mrcfabric"), wheel_of("mrcfabric")
    assert one == other


def test_what_a_source_tree_knows_of_itself_is_carried_as_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "treelike.egg-info").mkdir()
    (tmp_path / "treelike.egg-info/PKG-INFO").write_text("Metadata-Version: 2.1\nName: treelike\nVersion: 7.5\n")
    monkeypatch.syspath_prepend(tmp_path)
    wheel = wheel_of("treelike")
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as archive:
        assert b"Version: 7.5" in archive.read("treelike-7.5.dist-info/METADATA")


def test_what_is_installed_is_known_without_a_wheel_of_it() -> None:
    assert {"orchestrator", "mrcfabric", "nicd", "switchd"} <= set(packages_of("mrcfabric"))
    assert requirements_of("mrcfabric") == wheel_of("mrcfabric").requirements


def test_what_is_not_installed_is_said() -> None:
    with pytest.raises(ConfigError, match="nobodyhasthis: is not installed here"):
        wheel_of("nobodyhasthis")


def test_pip_is_found_where_distutils_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distutils", ModuleType("distutils"))
    assert wheel_of("pip").content


@pytest.mark.long
@pytest.mark.integration
def test_our_pip_installs_it_and_itself_runs_from_its_own_wheel(tmp_path: Path) -> None:
    ours, pip = wheel_of("mrcfabric"), wheel_of("pip")
    for wheel in (ours, pip):
        (tmp_path / wheel.name).write_bytes(wheel.content)
    target = tmp_path / "target"
    options = ["--no-deps", "--no-index", "--no-compile", "--quiet", "--target", str(target)]
    command = [sys.executable, f"{tmp_path / pip.name}/pip", "install", *options, str(tmp_path / ours.name)]
    subprocess.run(command, check=True, capture_output=True)
    said = subprocess.run(
        [sys.executable, "-P", "-c", "import orchestrator; print(orchestrator.__file__)"],
        env={"PYTHONPATH": str(target)}, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.strip() == str(target / "orchestrator/__init__.py")
