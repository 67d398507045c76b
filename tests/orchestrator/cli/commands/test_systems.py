"""`mrcfabric systems`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrcfabric import bundles
from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app

RUNNER = CliRunner()


def test_every_system_is_listed_with_what_it_is() -> None:
    found = RUNNER.invoke(build_app(), ["systems"])
    assert found.exit_code == 0
    heads = [line.partition(":")[0] for line in found.stdout.splitlines() if not line.startswith(" ")]
    assert heads == bundles.names()
    assert found.stdout.count("  follows ") == len(heads)


def test_json_holds_the_settings() -> None:
    rows = json.loads(RUNNER.invoke(build_app(), ["systems", "--json"]).stdout)
    assert [row["name"] for row in rows] == bundles.names()
    assert {"name", "about", "source", "nic", "switch"} <= rows[0].keys()


@pytest.mark.parametrize("words", [["up"], ["demo"], ["perf", "pair"], ["run", "FILE"], ["plan"]])
def test_every_command_that_starts_a_fabric_takes_one_and_refuses_what_it_does_not_know(
    words: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("name: s\n")
    found = RUNNER.invoke(build_app(), [*(str(file) if word == "FILE" else word for word in words), "--system", "mcr"])
    assert isinstance(found.exception, ConfigError)
    assert str(found.exception).startswith("--system mcr: no system is called mcr (nearest is mrc; there are ")
