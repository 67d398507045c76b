"""The real `chaos run` carries out the experiment that is shipped, over a fabric that runs."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.agent.agent import Agent
from orchestrator.fabric import Fabric
from tests.support.fabrics import SMALL
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
CHAOS = Path(sys.executable).with_name("chaos")


async def test_the_experiment_completes_and_leaves_no_fault(tmp_path: Path) -> None:
    journal = tmp_path / "journal.json"
    async with Fabric.launch(replace(SMALL, dilation=500), tmp_path / "run") as fabric:
        ready = asyncio.Event()
        agent = Agent(fabric)
        serving = asyncio.create_task(agent.serve(ready.set))
        await ready.wait()
        process = await asyncio.create_subprocess_exec(
            str(CHAOS), "--no-version-check", "run", "--journal-path", str(journal),
            str(ROOT / "examples" / "chaos" / "experiment.json"),
            cwd=tmp_path, env={**os.environ, "MRCFABRIC_RUN_DIR": str(tmp_path / "run"), "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
        # Healing is told ahead: it has happened when fabric time has come there.
        await eventually(lambda: not fabric.faults(), 60)
        agent.stop.set()
        await serving
    assert process.returncode == 0, output.decode()
    told = json.loads(journal.read_text())
    assert (told["status"], told["deviated"]) == ("completed", False)
    assert [step["status"] for step in told["run"]] == ["succeeded"] * 7
    [broken] = [step["output"] for step in told["run"] if step["activity"]["name"] == "lose-packets-on-one-link"]
    assert (broken["kind"], broken["title"]) == ("loss", "a bad cable")
