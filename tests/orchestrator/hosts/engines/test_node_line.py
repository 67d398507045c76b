"""The dialogue with a task that is a child of this process."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines import payload
from orchestrator.hosts.engines.host_facts import HostFacts
from orchestrator.hosts.engines.node_line import ANSWER_BYTES_MAX, TASK, LineBrokenError, NodeLine
from orchestrator.hosts.engines.payload import Wheelhouse
from orchestrator.hosts.placement.inventory import Host
from orchestrator.process.launcher import ProcessFailedError
from tests.support import bare
from tests.support.launches import DEADLINE_S

pytestmark = pytest.mark.integration

WORDS = f"import sys; from {bare.DEPENDENCY} import X; print(X, sys.argv[1:], sys.stdin.readline())"


@asynccontextmanager
async def task(folder: Path, python: str = sys.executable) -> AsyncIterator[NodeLine]:
    """A task with a folder for temporary files."""
    process = await asyncio.create_subprocess_exec(
        python, "-c", TASK,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={"TMPDIR": str(folder), "SLURMD_NODENAME": "h2", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1"},
        limit=ANSWER_BYTES_MAX,
    )  # fmt: skip
    assert process.stdin is not None
    try:
        yield NodeLine(Host.at("h2", "127.0.0.1"), process, lambda _line: None)
    finally:
        process.stdin.close()
        await process.wait()


@pytest.mark.long
async def test_a_bare_node_is_given_the_code_and_its_packages_and_becomes_the_program(tmp_path: Path) -> None:
    python = await asyncio.to_thread(bare.interpreter, tmp_path / "bare", with_pip=False)
    await asyncio.to_thread(bare.dependency, tmp_path / "wheels")
    wheelhouse, wheel = Wheelhouse.read(tmp_path / "wheels"), bare.application()
    async with task(tmp_path, python) as line:
        greeting = await line.greet(DEADLINE_S)
        assert (greeting["python"], greeting["step"]) == (list(sys.version_info[:3]), "7.1")
        order = {
            "do": "look",
            "run_dir": "mrc",
            "ports": [],
            **payload.order(wheel.requirements, wheel.digest, wheelhouse),
        }
        findings = HostFacts("h2", python, await line.there(order))
        assert findings.run_dir == str(tmp_path / f"mrcfabric-{os.getuid()}/h2/mrc")
        modules = await payload.deliver(line, findings, wheel, wheelhouse)
        line.become(findings.run_dir, modules, ("-c", WORDS, "word"), b"launch\n")
        assert line.process.stdout is not None
        said = await asyncio.wait_for(line.process.stdout.read(), DEADLINE_S)
        assert said.decode() == "1 ['word'] launch\n\n"


async def test_what_cannot_be_done_there_is_said(tmp_path: Path) -> None:
    async with task(tmp_path) as line:
        await line.greet(DEADLINE_S)
        with pytest.raises(ConfigError, match="host h2: files cannot be copied there: /proc/x: No such file"):
            await line.put({"/proc/x": b""})
        with pytest.raises(ProcessFailedError, match="host h2: /no/such: /no/such: No such file"):
            await line.run(["/no/such"])
        line.become(str(tmp_path / "gone"), [], [], b"")
        with pytest.raises(LineBrokenError):
            await line.order({"do": "run", "words": ["true"]}, DEADLINE_S)


async def test_a_task_without_a_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / f"mrcfabric-{os.getuid()}").write_text("")
    async with task(tmp_path) as line:
        assert "File exists" in (await line.greet(DEADLINE_S))["failed"]
