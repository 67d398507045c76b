"""A scenario as a child process, from its first line to its report."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import RefusedError
from orchestrator.fabric import Fabric
from orchestrator.web.page_state import PageState
from orchestrator.web.run_child import LOOK_WALL_S, REPORT_PATH, RUNS, RunChild
from tests.orchestrator.running import SMALL
from tests.support.wait import eventually

pytestmark = pytest.mark.integration
DEADLINE_S = 60.0
SHORT = """
name: short
length: 60rtt
workload: [{name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 8}]
method: [{name: cut, at: 5rtt, for: 10rtt, fault: link_down, selector: {tier: t0-t1}, mode: one}]
"""
LONG = """
name: long
length: 500000rtt
workload: [{name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 100000}]
"""


DILATION = 2000.0


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[Fabric]:
    """One that leaves the machine time for the commands: most of what is waited for here is not the fabric's."""
    async with Fabric.launch(replace(SMALL, dilation=DILATION), tmp_path / "small") as one:
        yield one


def lines_of(page_state: PageState) -> list[dict[str, Any]]:
    return [dict(line) for line in page_state.run_lines.since(0)[0]]


def ends(runs: RunChild) -> bool:
    try:
        runs.end()
    except RefusedError:
        return False
    return True


async def ended(page_state: PageState) -> dict[str, Any]:
    await eventually(lambda: page_state.run is not None and page_state.run["phase"] == "ended", DEADLINE_S)
    assert page_state.run is not None
    return page_state.run


@pytest.mark.long
async def test_runs_one_after_the_other(served: Fabric, tmp_path: Path) -> None:
    for name, text in (("short", SHORT), ("long", LONG), ("wrong", "name: [")):
        (tmp_path / f"{name}.yaml").write_text(text)
    page_state = PageState(lambda: None)
    runs = RunChild(served.folder.path, page_state)
    with pytest.raises(RefusedError, match="no scenario"):
        runs.end()

    runs.start(tmp_path / "short.yaml", "short.yaml", "short", "a seed")
    with pytest.raises(RefusedError, match="short is still running"):
        runs.start(tmp_path / "long.yaml", "long.yaml", "long", None)
    state = await ended(page_state)
    assert (state["exit_code"], state["verdict"], state["error"]) == (0, "held", "")
    assert state["report"] == REPORT_PATH
    assert runs.report == served.folder.path / RUNS / "short" / "report.html"
    lines = lines_of(page_state)
    assert (lines[0]["event"], lines[0]["seed"], lines[-1]["event"]) == ("begin", "a seed", "end")
    assert [line["phase"] for line in lines if line["event"] == "fault"][:1] == ["injected"]

    runs.start(tmp_path / "long.yaml", "long.yaml", "long", None)
    await eventually(lambda: page_state.run is not None and page_state.run["phase"] == "running", DEADLINE_S)
    assert runs.end()["phase"] == "ending"
    state = await ended(page_state)
    assert (state["number"], state["exit_code"]) == (2, 128 + signal.SIGTERM)
    assert runs.report == served.folder.path / RUNS / "long" / "report.html"
    assert lines_of(page_state)[0]["name"] == "long"

    runs.start(tmp_path / "long.yaml", "long.yaml", "long", None)
    await eventually(lambda: ends(runs), DEADLINE_S)  # as soon as there is somebody to interrupt
    assert "Traceback" not in (await ended(page_state))["error"]

    runs.start(tmp_path / "wrong.yaml", "wrong.yaml", "wrong", None)
    state = await ended(page_state)
    assert (state["exit_code"], state["report"]) == (2, None)
    assert "wrong.yaml" in state["error"]

    runs.start(tmp_path / "long.yaml", "long.yaml", "long", None)
    await eventually(lambda: page_state.run is not None and page_state.run["phase"] == "running", DEADLINE_S)
    await runs.close()
    assert page_state.run is not None
    assert page_state.run["phase"] == "ended"
    assert await served.live_faults() == []


async def test_looks_are_thinned_and_everything_else_is_passed_on() -> None:
    page_state = PageState(lambda: None)
    runs = RunChild(Path("nowhere"), page_state)
    runs.begin("x", "x")
    for number in range(50):
        runs.hear(json.dumps({"event": "look", "number": number}).encode())
        runs.hear(json.dumps({"event": "step", "number": number}).encode())
    events = [line["event"] for line in lines_of(page_state)]
    assert events.count("step") == 50
    assert 1 <= events.count("look") < 50
    assert LOOK_WALL_S > 0


async def test_a_run_ends_with_whoever_started_it(served: Fabric, tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(LONG)
    script = (
        "import asyncio, pathlib, sys\n"
        "from orchestrator.web.page_state import PageState\n"
        "from orchestrator.web.run_child import RunChild\n"
        "async def main():\n"
        "    runs = RunChild(pathlib.Path(sys.argv[1]), page_state := PageState(lambda: None))\n"
        "    runs.start(pathlib.Path(sys.argv[2]), 'long', 'long', None)\n"
        "    while page_state.run['phase'] != 'running':\n"
        "        await asyncio.sleep(0.05)\n"
        "    print(runs.pid, flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    starter = await asyncio.create_subprocess_exec(
        os.sys.executable, "-c", script, str(served.folder.path), str(tmp_path / "long.yaml"),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert starter.stdout is not None
    pid = int(await starter.stdout.readline())
    starter.kill()
    await starter.wait()
    await eventually(lambda: not Path(f"/proc/{pid}").exists(), DEADLINE_S)
