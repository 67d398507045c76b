"""promtool's unit tests of every rule, run."""

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.prometheus import configuration
from orchestrator.prometheus.configuration import SHIPPED_PACE
from tests.support.packages import program
from tools.prometheus.rule_cases import ALERT_CASES, RECORD_CASES
from tools.prometheus.rule_tests import RULES_TEST, rule_tests


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    """promtool over the shipped rules."""
    for name, text in configuration.files(SHIPPED_PACE, ["targets.json"]).items():
        (folder / name).write_text(text)
    (folder / RULES_TEST).write_text(configuration.text(rule_tests()))
    command = [program("promtool"), "test", "rules", RULES_TEST]
    # It reads the same rules again for each case, and looks for garbage for a quarter of its time.
    environment = {**os.environ, "GOGC": "400"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
def test_every_rule_does_what_its_cases_say(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_test_per_case() -> None:
    made = rule_tests()
    assert len(made["tests"]) == len(ALERT_CASES) + len(RECORD_CASES)
    first = made["tests"][0]
    assert first["name"] == f"{ALERT_CASES[0].alert}: {ALERT_CASES[0].title}"
    assert first["alert_rule_test"][0]["eval_time"] == "120s"
    assert first["alert_rule_test"][0]["exp_alerts"][0]["exp_labels"]["severity"] == "warning"
