"""`mrcfabric events`: what happened where."""

import asyncio
import json
import sys

import pytest

from orchestrator.fabric import Fabric
from tests.orchestrator.running import ask, broken, connect, run

pytestmark = pytest.mark.integration


async def command(fabric: Fabric, *arguments: str) -> str:
    folder = fabric.folder.path
    return await asyncio.to_thread(ask, folder, *arguments, "--run-dir", str(folder))


async def test_events_of_all_nodes_of_some_and_of_a_kind(served: Fabric) -> None:
    await connect(served)
    await broken(served, "nic_port_down", "h001:1")
    lines = [json.loads(line) for line in (await command(served, "events", "h001", "--json")).splitlines()]
    kinds = [line["kind"] for line in lines]
    assert kinds[:3] == ["qp_change"] * 3
    assert "port_change" in kinds
    assert {line["node"] for line in lines} == {"h001"}
    later = await command(served, "events", "h001", "--json", "--since", str(lines[-1]["n"]))
    assert later == ""
    every = await command(served, "events", "--since", "0")
    assert "ready" in every.splitlines()[0]
    assert "nic_port_down" in await command(served, "events", "--kind", "fault")
    assert (await command(served, "events", "-n", "1")).count("\n") == 1
    wrong = await asyncio.to_thread(
        run, served.folder.path, "events", "--kind", "faul", "--run-dir", str(served.folder.path)
    )
    assert (wrong.returncode, "nearest is fault" in wrong.stderr) == (2, True)


async def test_following_tells_of_what_comes_as_it_comes(served: Fabric) -> None:
    asked = [
        sys.executable,
        "-m",
        "orchestrator.cli",
        "events",
        "-f",
        "--since",
        "0",
        "--kind",
        "port_change",
        "--json",
    ]
    asked += ["--json", "--run-dir", str(served.folder.path)]
    child = await asyncio.create_subprocess_exec(*asked, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    try:
        await broken(served, "nic_port_down", "h001:1")
        async with asyncio.timeout(30):
            line = json.loads(await child.stdout.readline())
    finally:
        child.kill()
        await child.wait()
    assert (line["node"], line["kind"], line["up"]) == ("h001", "port_change", False)
