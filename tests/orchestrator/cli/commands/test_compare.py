"""`mrcfabric compare` on the command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app
from orchestrator.measures.expectation import Expectation
from orchestrator.report import files
from tests.support.recordings import sample_run_report

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files.write(sample_run_report(), tmp_path / "a")
    files.write(sample_run_report((Expectation("every bin", "goodput", at_least=0.1),)), tmp_path / "b")
    return tmp_path


def test_runs_that_came_out_alike(folder: Path) -> None:
    found = RUNNER.invoke(build_app(), ["compare", str(folder / "a"), str(folder / "a" / "report.json")])
    assert found.exit_code == 0
    assert found.stdout.rstrip().endswith("every expectation came out alike; the same trace")


def test_runs_that_did_not(folder: Path) -> None:
    found = RUNNER.invoke(build_app(), ["compare", "--json", str(folder / "a"), str(folder / "b")])
    assert found.exit_code == 1
    assert json.loads(found.stdout)["changed"][0].startswith("steady: held in A")


def test_what_is_no_report_is_the_operators_mistake(folder: Path) -> None:
    found = RUNNER.invoke(build_app(), ["compare", str(folder / "a"), str(folder)])
    assert isinstance(found.exception, ConfigError)
