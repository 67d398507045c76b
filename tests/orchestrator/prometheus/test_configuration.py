"""The files that Prometheus reads, checked by its own tool."""

import subprocess
from pathlib import Path

import pytest
import yaml

from orchestrator.prometheus import configuration
from orchestrator.prometheus.configuration import SHIPPED_PACE
from orchestrator.prometheus.rule import Pace
from tests.support.packages import program


@pytest.mark.slow
@pytest.mark.parametrize("pace", [SHIPPED_PACE, Pace(1000), Pace(2500)])
def test_promtool_finds_nothing_wrong(tmp_path: Path, pace: Pace) -> None:
    (tmp_path / "targets.json").write_text("[]")
    for name, text in configuration.files(pace, ["targets.json"]).items():
        (tmp_path / name).write_text(text)
    command = [program("promtool"), "check", "config", tmp_path / configuration.CONFIGURATION]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "WARNING" not in done.stdout + done.stderr


def test_labels_of_the_fabric_are_kept() -> None:
    made = configuration.configuration(Pace(1000), ["a.json", "b.json"])
    (job,) = made["scrape_configs"]
    assert job["honor_labels"] is True
    assert job["file_sd_configs"][0]["files"] == ["a.json", "b.json"]
    assert made["global"] == {"scrape_interval": "1s", "evaluation_interval": "1s"}


def test_yaml_keeps_order_and_repeats_instead_of_pointing() -> None:
    same = ["x"]
    text = configuration.text({"b": same, "a": same})
    assert text == "b:\n- x\na:\n- x\n"
    assert yaml.safe_load(text) == {"b": ["x"], "a": ["x"]}
