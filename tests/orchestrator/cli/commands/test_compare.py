"""`mrcfabric compare` on the command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mrcfabric.errors import ConfigError, RefusedError
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


SCENARIO = """
name: small
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 1, evs_per_qp: 16, reserve_evs_per_qp: 8}
length: 100rtt
workload: [{name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 4}]
expect: [{measure: goodput, at_least: 10%}]
"""
OTHER = "about: One path per QP.\nsource: For tests.\nnic: {path_policy: single}\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "other.yaml").write_text(OTHER)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    return tmp_path / "s.yaml"


def on_systems(scenario: Path, *words: str) -> Result:
    systems = f"mrc,{scenario.parent}/other.yaml"
    folder = str(scenario.parent / "out")
    return RUNNER.invoke(
        build_app(), ["compare", str(scenario), "--systems", systems, "--sim", "--plain", "-o", folder, *words]
    )


def test_a_scenario_on_two_systems_as_a_table(scenario: Path) -> None:
    found = on_systems(scenario)
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert any(line.split() == ["mrc", "other"] for line in lines)
    assert any(line.startswith("  goodput, share of line") for line in lines)
    assert lines[-1] == f"report: {scenario.parent}/out/systems.html"


def test_as_json_and_with_the_gravest_exit_code(scenario: Path) -> None:
    found = on_systems(scenario, "--json", "--set", "expect.0.at_least=100%")
    assert found.exit_code == 1
    data = json.loads(found.stdout)
    assert [row["system"] for row in data["systems"]] == ["mrc", "other"]
    assert [row["verdict"] for row in data["systems"]] == ["not held", "not held"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["compare", "A"], "a comparison needs two"),
        (["compare", "A", "A", "--sim"], "add --systems LIST"),
        (["compare", "A", "B", "--systems", "mrc,other"], "leave out B"),
        (["compare", "A", "--systems", "mrc"], "mrcfabric run --system mrc"),
        (["compare", "SCENARIO", "--systems", "mrc,roec"], "--systems roec: no system is called roec"),
    ],
)
def test_arguments_that_do_not_go_together(scenario: Path, words: list[str], what: str) -> None:
    named = [str(scenario) if word == "SCENARIO" else word for word in words]
    found = RUNNER.invoke(build_app(), named)
    assert isinstance(found.exception, ConfigError)
    assert what in str(found.exception)


def test_a_comparison_that_cannot_be_written_is_no_verdict(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_texts = files.write_texts

    def full(texts: dict[str, str], folder: Path) -> None:
        if "systems.json" in texts:
            raise RefusedError(f"the report cannot be written to {folder}: No space left on device")
        write_texts(texts, folder)

    monkeypatch.setattr(files, "write_texts", full)
    asked = ["compare", "--systems", "mrc,irn", str(scenario), "--sim", "-o", str(scenario.parent / "a\x1b[31m")]
    found = RUNNER.invoke(build_app(), asked)
    assert found.exit_code == 4
    assert "a\\x1b[31m: No space left on device" in found.stderr
    assert "\x1b[31m" not in found.stderr
    assert "payload sent beyond what arrived" in found.stdout
    assert "report: " not in found.stdout
    printed = RUNNER.invoke(build_app(), [*asked, "--json"])
    assert printed.exit_code == 4
    assert [one["system"] for one in json.loads(printed.stdout)["systems"]] == ["mrc", "irn"]
