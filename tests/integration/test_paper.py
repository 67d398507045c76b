"""The paper's experiments: every scenario holds on both beds, with one trace, and docs/PAPER.md says what comes out."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli import build_app

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "paper"
MRCFABRIC = str(Path(sys.executable).with_name("mrcfabric"))
SCENARIOS = sorted(path.stem for path in EXAMPLES.glob("*.yaml") if path.stem != "fabric")
SWITCHES_DIE = ("four-t1s-reboot", "t0-down", "t1-down-and-reboot")
"""These have a process for each daemon, since a switch that shares its process cannot die alone. In the others the
switches of a plane share one, which takes a quarter less CPU; the trace is the same."""

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


def invoke(*arguments: object) -> Result:
    """`mrcfabric ARGUMENTS` in this process."""
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_holds_on_both_beds_with_one_trace(name: str, tmp_path: Path) -> None:
    words = ("run", EXAMPLES / f"{name}.yaml", "--trace", "--plain", "--report")
    pack = "none" if name in SWITCHES_DIE else "plane"
    udp = subprocess.Popen(
        [MRCFABRIC, *words, tmp_path / "udp", "--run-dir", tmp_path / "run", "--pack", pack],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    with udp:
        simulated = invoke(*words, tmp_path / "sim", "--backend", "sim")
        said, _ = udp.communicate(timeout=240)
    assert udp.returncode == 0, f"udp: {said}"
    assert simulated.exit_code == 0, f"sim: {simulated.output}"
    reports = {backend: json.loads((tmp_path / backend / "report.json").read_text()) for backend in ("sim", "udp")}
    assert PAGE.row(ROWS[name], reports["sim"]) in (ROOT / "docs" / "PAPER.md").read_text(), "run: make paper"
    assert reports["udp"]["trace_digest"] == reports["sim"]["trace_digest"] != ""
    compared = invoke("compare", tmp_path / "sim", tmp_path / "udp")
    assert compared.exit_code == 0, compared.stdout


@pytest.mark.parametrize("name", ["eight-links-flap", "t1-down-and-reboot"])
def test_one_path_is_not_taken_for_many(name: str, tmp_path: Path) -> None:
    """A share of a baseline alone would not tell: with one path there is little to lose."""
    done = invoke(
        *("run", EXAMPLES / f"{name}.yaml", "--backend", "sim", "--plain", "--report", tmp_path),
        *("--set", "fabric.nic.path_policy=single"),
    )
    assert done.exit_code == 1, done.output
    assert "FAIL  all paths are used" in done.stdout
