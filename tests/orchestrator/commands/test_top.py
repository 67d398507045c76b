"""`mrcfabric top` on a fabric that runs: lines where there is no terminal, a screen where there is one."""

import asyncio
import os
import pty
import sys

import pytest

from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, ask

pytestmark = pytest.mark.integration


async def test_plain_lines_without_a_terminal(served: Fabric) -> None:
    folder = served.folder.path
    said = await asyncio.to_thread(ask, folder, "top", "-n", "2", "--every", "0.1", "--run-dir", str(folder))
    lines = said.splitlines()
    assert len(lines) == 2
    assert all("Gb/s" in line and "valid" in line for line in lines)


async def test_a_screen_that_q_ends(served: Fabric) -> None:
    ours, theirs = pty.openpty()
    asked = [sys.executable, "-m", "orchestrator.cli", "top", "--run-dir", str(served.folder.path)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    child = await asyncio.create_subprocess_exec(*asked, stdin=theirs, stdout=theirs, env=environment)
    os.close(theirs)
    loop = asyncio.get_running_loop()
    seen = b""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while b"q quit" not in seen:
                seen += await loop.run_in_executor(None, os.read, ours, 65536)
            os.write(ours, b"q")
            assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
        os.close(ours)
