"""`mrcfabric sweep`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app
from orchestrator.process.launcher import ProcessFailedError
from orchestrator.runs import sweep as sweeping
from tests.orchestrator.runs.test_sweep import scenario


def invoke(*words: str) -> Result:
    return CliRunner().invoke(build_app(), ["sweep", *words, "--jobs", "1"])


def test_a_table_of_ranges_and_the_gravest_exit_code(tmp_path: Path) -> None:
    done = invoke(scenario(tmp_path), "--seeds", "1-2", "--set", "workload.pair.message_bytes=64KiB,4MiB")
    assert done.exit_code == 1
    assert "workload.pair.message_bytes=64KiB: 2 held" in done.output
    assert "workload.pair.message_bytes=4MiB: 2 not held" in done.output
    assert "0 of 2  at most 300" in done.output
    assert "4 of 4: " in done.output


def test_a_value_that_is_given_twice_runs_once(tmp_path: Path) -> None:
    size = "workload.pair.message_bytes=64KiB,64KiB"
    done = invoke(scenario(tmp_path), "--seeds", "1,1", "--set", size, "--json")
    assert done.exit_code == 0
    assert [len(point["runs"]) for point in json.loads(done.stdout)["points"]] == [1]
    assert done.stderr.splitlines()[:2] == [
        "mrcfabric: --seeds: 1 given more than once, and run once",
        "mrcfabric: --set workload.pair.message_bytes: 64KiB given more than once, and run once",
    ]


def test_a_repeated_run_is_a_sweep_over_seeds_made_of_its_own(tmp_path: Path) -> None:
    words = ["run", scenario(tmp_path), "--backend", "sim", "--repeat", "3", "--jobs", "1", "--json"]
    done = CliRunner().invoke(build_app(), words)
    assert done.exit_code == 0
    (point,) = json.loads(done.stdout)["points"]
    assert [run["seed"] for run in point["runs"]] == ["paper", "paper-2", "paper-3"]


@pytest.mark.parametrize(
    "words", [["--repeat", "2"], ["--repeat", "2", "--backend", "sim", "--trace"], ["--jobs", "2"]]
)
def test_flags_that_a_repeated_run_cannot_take_are_refused(words: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(build_app(), ["run", scenario(tmp_path), *words])
    assert isinstance(done.exception, ConfigError)
    assert "--repeat" in str(done.exception)


def test_json_holds_every_run(tmp_path: Path) -> None:
    done = invoke(scenario(tmp_path), "--seeds", "a", "--json")
    assert done.exit_code == 0
    data = json.loads(done.stdout)
    assert [run["seed"] for run in data["points"][0]["runs"]] == ["a"]
    assert data["points"][0]["measures"][0]["name"] == "goodput"


def test_what_was_not_tried_is_said(tmp_path: Path) -> None:
    method = "method: [{name: late, at: 300rtt, for: 10rtt, fault: link_down, selector: {tier: t0-t1}}]\n"
    done = invoke(
        scenario(tmp_path, method + "expect: [{measure: qp_errors, during: late, at_most: 0}]\n"), "--seeds", "1"
    )
    assert done.exit_code == 1
    assert "seed 1: no packet met fault late: it was not tried" in done.output


def test_a_sweep_that_lost_a_process_could_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_arguments: object) -> None:
        raise ProcessFailedError("one of the 2 processes that run jobs was killed")

    monkeypatch.setattr(sweeping, "sweep", lost)
    done = invoke(scenario(tmp_path), "--seeds", "1-2")
    assert done.exit_code == 4
    assert done.stderr == "mrcfabric: one of the 2 processes that run jobs was killed\n"
