"""What a share agent does on its host: refused where it must be, in words for the operator."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.control_message import Realm
from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.layout import NICD_ENTRY
from orchestrator.hosts.share_host import CHUNK_BYTES, ShareHost
from orchestrator.process import ports, run_folder
from orchestrator.process.launcher import ProcessFailedError
from orchestrator.workers.entry import ENTRY
from tests.orchestrator.hosts.test_share_agent import SECRET, SETTINGS

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@asynccontextmanager
async def share_host(folder: Path, told: list[dict[str, Any]] | None = None) -> AsyncIterator[ShareHost]:
    """Of one launch, closed at the end."""
    events: list[dict[str, Any]] = [] if told is None else told
    here = ShareHost(Realm(SECRET, "small", 1), 1, folder, events.append, lambda why: pytest.fail(why))
    try:
        yield here
    finally:
        await here.close()


async def test_only_files_of_the_run_folder_are_handed_out_and_in_parts(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("not ours")
    async with share_host(tmp_path) as here:
        folder = Path((await here.ops["furnish"](SETTINGS))["folder"])
        assert folder == tmp_path / "small"
        (folder / "logs" / "big.log").write_bytes(bytes(CHUNK_BYTES + 10))
        (folder / "secret").write_text("never")

        async def read(path: str, offset: int = 0, limit: int = 1 << 30) -> dict[str, Any]:
            found: dict[str, Any] = await here.ops["read"]({"path": path, "offset": offset, "limit": limit})
            return found

        part = await read("logs/big.log")
        assert (len(part["bytes"]), part["size"]) == (CHUNK_BYTES, CHUNK_BYTES + 10)
        assert len((await read("logs/big.log", CHUNK_BYTES))["bytes"]) == 10
        assert (await read("logs/big.log", 0, -1))["bytes"] == b""
        for path in ("../other", "secret", "logs", "nothing.log", str(tmp_path / "other")):
            with pytest.raises(ConfigError, match="is none that is handed out"):
                await read(path)


async def test_a_process_is_not_started_before_the_page_has_heard_of_its_birth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.hosts.share_host.ORDER_WALL_S", 0.05)
    async with share_host(tmp_path) as here:
        await here.ops["furnish"](SETTINGS)
        order = {"name": "h000", "entry": NICD_ENTRY, "nodes": ["h000"], "tables": {"h000": 0}, "orders": {0: 1}}
        with pytest.raises(ProcessFailedError, match="h000: the page has not heard of its birth"):
            await here.ops["spawn"](order)


async def test_nothing_is_run_there_but_daemons_and_workers_and_no_log_is_elsewhere(tmp_path: Path) -> None:
    out = tmp_path / "out.log"
    touch = ["touch", str(out)]
    shell = {
        "name": "h000", "entry": "pty:spawn", "arguments": touch, "nodes": ["h000"], "tables": {"h000": touch},
        "orders": {}, "preload": [],
    }  # fmt: skip
    async with share_host(tmp_path) as here:
        await here.ops["furnish"](SETTINGS)
        for op, order, what in (
            ("spawn", shell, "pty:spawn is no daemon of ours"),
            ("spawn", shell | {"entry": ENTRY}, "is no daemon of ours"),
            ("spawn", shell | {"entry": NICD_ENTRY, "name": "../../out"}, "is no name of a process"),
            ("worker", shell, "pty:spawn is no worker of ours"),
            ("worker", shell | {"entry": ENTRY, "preload": ["antigravity"]}, "is no worker of ours"),
            ("worker", shell | {"entry": ENTRY, "name": "../../out"}, "is no name of a process"),
        ):
            with pytest.raises(ConfigError, match=what):
                await here.ops[op](order)
    assert not out.exists()


async def test_a_share_of_another_machine_in_the_same_folder_is_no_process_of_ours_to_end(tmp_path: Path) -> None:
    async with share_host(tmp_path) as there, share_host(tmp_path) as here:
        await there.ops["furnish"](SETTINGS)
        there.note(heard=False)
        status = tmp_path / "small" / "share.json"
        status.write_text(json.dumps(json.loads(status.read_text()) | {"at": "the hour of its birth pid:[1]"}))
        with pytest.raises(ConfigError, match="a fabric is already running there"):
            await here.ops["furnish"](SETTINGS)


async def test_ports_that_somebody_has_are_named_and_everything_is_given_back(tmp_path: Path) -> None:
    taken = ports.allocate(8)
    try:
        async with share_host(tmp_path) as here:
            await here.ops["furnish"](SETTINGS)
            with pytest.raises(ConfigError, match="free on every host") as refused:
                await here.ops["reserve"]({"size": 8, "base": taken.base})
            assert refused.value.where == f"ports {taken.base}..{taken.base + 7}"
            here.note(heard=False)
            assert '"heard": 0' in (tmp_path / "small" / "share.json").read_text()
            assert run_folder.is_held(tmp_path / "small")
    finally:
        taken.close()
    assert not run_folder.is_held(tmp_path / "small")
    assert not (tmp_path / "small" / "share.json").exists()


async def test_who_is_heard_after_the_end_leaves_nothing_in_the_folder(tmp_path: Path) -> None:
    async with share_host(tmp_path) as here:
        await here.ops["furnish"](SETTINGS)
        here.note(heard=True)
        assert (tmp_path / "small" / "share.json").exists()
    # The leader's conversation ends last.
    here.note(heard=False)
    assert not (tmp_path / "small" / "share.json").exists()
