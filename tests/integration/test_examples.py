"""The examples do what they say, on a real fabric."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.agent.agent import Agent
from orchestrator.fabric import Fabric
from tests.support.fabrics import SMALL

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).parents[2] / "examples"


async def test_a_write_from_an_application(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "run"):
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(EXAMPLES / "verbs_write.py"), str(tmp_path / "run"), "h000", "h003",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    assert output.startswith(b"900000 bytes in ")


async def _script(folder: Path, name: str, *arguments: str) -> list[str]:
    """What a script of examples/python prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / "python" / name), *arguments,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode().splitlines()


async def test_a_script_that_launches_a_fabric_and_cuts_a_link(tmp_path: Path) -> None:
    first, second = await _script(tmp_path, "cut_a_link.py", str(tmp_path / "run"))
    assert "is down from" in first
    assert "bytes verified" in second


async def test_scripts_that_attach_to_a_fabric(tmp_path: Path) -> None:
    async with Fabric.launch(replace(SMALL, nics_per_t0=1, dilation=500), tmp_path / "run") as fabric:
        ready = asyncio.Event()
        agent = Agent(fabric)
        serving = asyncio.create_task(agent.serve(ready.set))
        await ready.wait()
        *rates, healed = await _script(tmp_path, "one_by_one.py", str(tmp_path / "run"), "h000")
        assert len(rates) == SMALL.planes
        assert 45 <= int(rates[-1].split(", ")[1].rstrip("%")) <= 55
        assert healed == "healed: 1 faults"
        away, told = await _script(tmp_path, "reboot_when.py", str(tmp_path / "run"))
        assert "is away from" in away
        assert told.startswith("2 ranks, 20 steps")
        agent.stop.set()
        await serving
