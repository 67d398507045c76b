"""The paper's experiments: every scenario holds on both beds, with one trace, and docs/PAPER.md says what comes out."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "paper"
MRCFABRIC = str(Path(sys.executable).with_name("mrcfabric"))
SCENARIOS = sorted(path.stem for path in EXAMPLES.glob("*.yaml") if path.stem != "fabric")

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def page() -> ModuleType:
    """docs/generate_paper.py, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("generate_paper", ROOT / "docs" / "generate_paper.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = page()
ROWS = {experiment.scenario: experiment for experiment in PAGE.EXPERIMENTS}


def test_every_scenario_has_a_row() -> None:
    assert sorted(ROWS) == SCENARIOS


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_holds_on_both_beds_with_one_trace(name: str, tmp_path: Path) -> None:
    reports = {}
    for backend in ("sim", "udp"):
        done = subprocess.run(
            [MRCFABRIC, "run", EXAMPLES / f"{name}.yaml", "--backend", backend, "--trace", "--plain",
             "--report", tmp_path / backend, "--run-dir", tmp_path / "run"],
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{backend}: {done.stdout}{done.stderr}"
        reports[backend] = json.loads((tmp_path / backend / "report.json").read_text())
    assert PAGE.row(ROWS[name], reports["sim"]) in (ROOT / "docs" / "PAPER.md").read_text(), "run: make paper"
    assert reports["udp"]["trace_digest"] == reports["sim"]["trace_digest"] != ""
    compared = subprocess.run(
        [MRCFABRIC, "compare", tmp_path / "sim", tmp_path / "udp"], capture_output=True, check=False
    )
    assert compared.returncode == 0, compared.stdout


@pytest.mark.parametrize("name", ["eight-links-flap", "t1-down-and-reboot"])
def test_one_path_is_not_taken_for_many(name: str, tmp_path: Path) -> None:
    """A share of a baseline alone would not tell: with one path there is little to lose."""
    done = subprocess.run(
        [MRCFABRIC, "run", EXAMPLES / f"{name}.yaml", "--backend", "sim", "--plain", "--report", tmp_path,
         "--set", "fabric.nic.path_policy=single"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL  all paths are used" in done.stdout
