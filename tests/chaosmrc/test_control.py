"""The end of an experiment is the end of its sessions."""

from pathlib import Path
from typing import Any

import pytest

import chaosmrc
from chaosmrc import actions, control, probes, session
from orchestrator.fabric import Fabric
from tests.chaosmrc.asking import beside


@pytest.mark.integration
async def test_the_fabric_is_let_go_after_the_experiment(served: Fabric, configuration: dict[str, Any]) -> None:
    await beside(probes.nodes_down, configuration)
    await beside(control.after_experiment_control, context={}, state={}, settings={})
    assert not session._OPEN


def test_the_toolkit_discovers_every_action_and_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = {one["name"] for one in chaosmrc.discover(discover_system=False)["activities"]}
    assert found == {*actions.__all__, *probes.__all__}
    guide = (Path(__file__).parents[2] / "docs" / "PYTHON.md").read_text()
    assert not [name for name in found if f"`{name}(" not in guide], "docs/PYTHON.md lists them"
