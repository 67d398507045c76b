"""`mrcfabric doctor` as typed."""

import json

import pytest
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app
from orchestrator.hosts import doctor


def test_each_check_is_a_line_and_what_lacks_decides_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(build_app(), ["doctor", "--planes", "1"], catch_exceptions=False)
    assert done.exit_code == 0, done.stdout
    assert all(line.startswith(("ok ", "lacks ")) for line in done.stdout.splitlines())
    monkeypatch.setattr(doctor, "_available_bytes", lambda: 0)
    done = CliRunner().invoke(build_app(), ["doctor", "--json"], catch_exceptions=False)
    assert done.exit_code == 1
    [lacks] = [check for check in json.loads(done.stdout) if check["needed"] and not check["holds"]]
    assert lacks["name"] == "memory"


def test_a_topology_that_cannot_be_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="planes: 9 will not do"):
        CliRunner().invoke(build_app(), ["doctor", "--planes", "9"], catch_exceptions=False)
