"""`mrcfabric trace`: what is asked for, and packets followed through real daemons."""

import asyncio
import json
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.commands.trace import every_of, qp_of
from orchestrator.fabric import Fabric
from tests.orchestrator.running import ask, connect, fails
from tests.support.wait import eventually


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
        return await asked

    text = await trace("--qp", "h000:5")
    assert text.startswith("h000 QP 5 > h001 QP 5, PSN ")
    assert "acknowledged after" in text
    rows = [json.loads(line) for line in (await trace("--share", "1%", "--count", "3", "--json")).splitlines()]
    assert len(rows) == 3
    assert {len(row["attempts"][0]["way"]["hops"]) for row in rows} == {4}
    said = await asyncio.to_thread(fails, folder, "trace", "--qp", "h000:6", "--run-dir", str(folder))
    assert "h000 has no connected QP 6 (it has 5)" in said
