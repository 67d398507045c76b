"""`mrcfabric trace`: what is asked for, and packets followed through real daemons."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.cli.commands.trace import every_of, qp_of
from orchestrator.fabric import Fabric
from tests.orchestrator.running import COMMAND_WALL_S, DEADLINE_S, MRCFABRIC, ask, broken, connect, fails
from tests.support.wait import eventually, eventually_true


@pytest.mark.parametrize(("text", "every"), [("0.1%", 1000), ("0.001", 1000), ("100%", 1), ("1", 1), ("25%", 4)])
def test_shares(text: str, every: int) -> None:
    assert every_of(text) == every


@pytest.mark.parametrize("text", ["0", "101%", "-1%", "nan", "x", "", "1e-9"])
def test_no_shares(text: str) -> None:
    with pytest.raises(ConfigError, match="is no share"):
        every_of(text)


def test_qps() -> None:
    assert qp_of("h003:0x11") == ("h003", 17)
    for text in ("h003", "h003:", "h003:x"):
        with pytest.raises(ConfigError, match="is no QP"):
            qp_of(text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "which packets"),
        (["--psn", "5"], "which packets"),
        (["--share", "1%", "--psn", "5"], "a PSN is one QP's"),
        (["--share", "2"], "'2' is no share"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, arguments: list[str], text: str) -> None:
    assert text in fails(tmp_path, "trace", *arguments)


NEXT_WALL_S = 0.2
"""A message so often is enough for one that follows packets, and leaves it the processor."""


@pytest.mark.integration
async def test_packets_are_followed_and_told(served: Fabric) -> None:
    write = await connect(served)
    folder = served.folder.path

    async def trace(*arguments: str) -> str:
        asked = asyncio.create_task(asyncio.to_thread(ask, folder, "trace", *arguments, "--run-dir", str(folder)))
        number = 0
        while not asked.done():
            number += 1
            await served.command("h000", "post_write", {**write, "wr_id": number})
            await eventually(lambda: asked.done() or served.time.state == "sleep", deadline_s=30)
            await asyncio.wait([asked], timeout=NEXT_WALL_S)
        return await asked

    text = await trace("--qp", "h000:5")
    assert text.startswith("h000 QP 5 > h001 QP 5, PSN ")
    assert "acknowledged after" in text
    rows = [json.loads(line) for line in (await trace("--share", "1%", "--count", "3", "--json")).splitlines()]
    assert len(rows) == 3
    assert {len(row["attempts"][0]["way"]["hops"]) for row in rows} == {4}
    said = await asyncio.to_thread(fails, folder, "trace", "--qp", "h000:6", "--run-dir", str(folder))
    assert "h000 has no connected QP 6 (it has 5)" in said


@asynccontextmanager
async def begun(fabric: Fabric, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`mrcfabric trace` beside the test, when every node follows packets."""
    command = [MRCFABRIC, "trace", *arguments, "--run-dir", str(fabric.folder.path)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    async def followed() -> bool:
        for node in fabric.topology.node_names():
            with pytest.raises(RefusedError) as refused:
                await fabric.call(node, "witness", {"id": "x", "choice": {"every": 0}})
            if "followed already" not in str(refused.value):
                return False
        return True

    try:
        # It is the installed program: beside the work of others its imports alone have taken a quarter of a minute.
        await eventually_true(followed, COMMAND_WALL_S)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def said(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    async with asyncio.timeout(COMMAND_WALL_S):
        out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.mark.integration
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
async def test_a_signal_ends_a_trace_with_what_is_known(served: Fabric, number: signal.Signals) -> None:
    write = await connect(served)
    where = ("--run-dir", str(served.folder.path))
    async with begun(served, "--qp", "h000:5", "--for", "600s", "--psn", "0-3", "--json") as process:
        other = await asyncio.to_thread(fails, served.folder.path, "trace", "--share", "1%", *where, code=1)
        assert "packets are being followed already" in other
        assert "one trace at a time" in other
        for plane in range(2):
            await broken(served, "link_down", f"p{plane}-t0-1>h001")
        await served.command("h000", "post_write", {**write, "length": 2 * 4096, "wr_id": 1})
        await eventually_true(lambda: _sent(served), DEADLINE_S)
        # What a NIC has counted may still lie in its port.
        crossed_ns = served.now_ns() + served.topology.base_rtt_ns()
        await eventually(lambda: served.now_ns() > crossed_ns, DEADLINE_S)
        process.send_signal(number)
        code, out, err = await said(process)
    assert (code, err) == (0, "it was stopped\n")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["psn"], row["placed_ns"], row["acknowledged_ns"]) for row in rows] == [
        (0, None, None),
        (1, None, None),
    ]
    for row in rows:
        assert row["attempts"][0]["way"]["outcome"] in ("lost", "waiting", "under way")


async def _sent(fabric: Fabric) -> bool:
    return (await fabric.totals())["data_packets"] >= 2


@pytest.mark.integration
async def test_a_signal_before_anything_was_sent(served: Fabric) -> None:
    await connect(served)
    async with begun(served, "--qp", "h000:5", "--for", "600s") as process:
        process.send_signal(signal.SIGINT)
        assert await said(process) == (1, "", "it was stopped\nno such packet was sent\n")
