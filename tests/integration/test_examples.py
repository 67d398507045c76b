"""The examples do what they say, on a real fabric."""

import asyncio
import sys
from pathlib import Path

import pytest

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
