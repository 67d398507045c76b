"""`mrcfabric events`: what happened where."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, MRCFABRIC, ask, broken, connect, run
from tests.support.wait import eventually_true

pytestmark = pytest.mark.integration


async def command(fabric: Fabric, *arguments: str) -> str:
    folder = fabric.folder.path
    return await asyncio.to_thread(ask, folder, *arguments, "--run-dir", str(folder))


async def following(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    asked = [sys.executable, "-m", "orchestrator.cli", "events", "--follow", *arguments, "--run-dir", str(folder)]
    return await asyncio.create_subprocess_exec(*asked, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)


def test_numbers_of_events_that_cannot_be_are_refused_by_the_name_of_the_option(tmp_path: Path) -> None:
    for number in ("-1", str(1 << 62)):
        ended = run(tmp_path, "events", "--since", number)
        assert (ended.returncode, "'--since'" in ended.stderr) == (2, True), ended.stderr


async def test_events_of_all_nodes_of_some_and_of_a_kind(served: Fabric) -> None:
    await connect(served)
    await broken(served, "nic_port_down", "h001:1")

    async def told() -> bool:
        return "port_change" in await command(served, "events", "h001")

    await eventually_true(told, DEADLINE_S)  # the agent has asked the NIC since
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


async def test_who_knew_what_is_asked_of_fabrics_that_route(served: Fabric) -> None:
    asked = await asyncio.to_thread(
        run, served.folder.path, "events", "--fault", "f1", "--run-dir", str(served.folder.path)
    )
    assert asked.returncode != 0
    assert "do not route for themselves (switch.routing: bgp)" in asked.stderr
    assert asked.stderr.count("\n") == 1


async def test_following_tells_of_what_comes_as_it_comes(served: Fabric) -> None:
    child = await following(served.folder.path, "--since", "0", "--kind", "port_change", "--json")
    assert child.stdout is not None
    try:
        await broken(served, "nic_port_down", "h001:1")
        async with asyncio.timeout(30):
            line = json.loads(await child.stdout.readline())
    finally:
        child.kill()
        await child.wait()
    assert (line["node"], line["kind"], line["up"]) == ("h001", "port_change", False)


async def test_following_ends_with_a_signal_and_with_its_reader(served: Fabric) -> None:
    signalled, unread = [await following(served.folder.path, "-n", "1") for _ in range(2)]
    for child in (signalled, unread):
        assert child.stdout is not None
        assert b"ready" in await child.stdout.readline()
    signalled.send_signal(signal.SIGINT)
    unread._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
    async with asyncio.timeout(DEADLINE_S):
        assert await signalled.communicate() == (b"", b"")
        assert await unread.communicate() == (b"", b"")
    assert (signalled.returncode, unread.returncode) == (130, 1)


def test_following_ends_with_the_fabric(detached: Path) -> None:
    # It tells what has been, then what comes: when the first line is there, it is following.
    ask(detached, "fault", "add", "nic_port_down", "h001:1")
    asked = [MRCFABRIC, "events", "--follow", "-n", "1", "--kind", "fault", "--json"]
    with subprocess.Popen(asked, cwd=detached, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["kind"] == "fault"
        ask(detached, "down")
        _, wrong = child.communicate(timeout=DEADLINE_S)
    assert (child.returncode, wrong) == (0, "")
