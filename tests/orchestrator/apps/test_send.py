"""A file crosses a small fabric of real daemons."""

import asyncio
import hashlib
import os
import signal
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.apps.send import MESSAGE_BYTES, Transfer, send_in_new, send_in_running, transfer
from orchestrator.fabric import Fabric
from orchestrator.workers.group import WorkerFailedError
from tests.orchestrator.running import DEADLINE_S, broken
from tests.support.fabrics import SMALL
from tests.support.wait import eventually


@pytest.mark.integration
@pytest.mark.slow
async def test_a_file_arrives_in_a_fabric_of_its_own(tmp_path: Path) -> None:
    content = bytes(range(251)) * 4501  # a little more than one message
    assert len(content) % MESSAGE_BYTES
    (tmp_path / "in").write_bytes(content)
    (tmp_path / "out").write_bytes(content * 2)
    what = Transfer(tmp_path / "in", "h000", "h003", tmp_path / "out")
    record = await send_in_new(SMALL, tmp_path / "a", "plane", what)
    assert record["same"]
    assert record["sha256"] == record["sha256_arrived"] == hashlib.sha256(content).hexdigest()
    assert record["bytes"] == len(content)
    assert (tmp_path / "out").read_bytes() == content
    with pytest.raises(ConfigError, match="no fabric runs there"):
        await send_in_running(tmp_path / "a", what)


@pytest.mark.integration
@pytest.mark.slow
async def test_whoever_fails_in_a_transfer_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(30 * MESSAGE_BYTES))
    async with Fabric.launch(SMALL, tmp_path / "small", pack="plane") as fabric:
        for nic, killed in (("h003", "send-h003"), ("h000", "send-h000")):
            sending = asyncio.create_task(transfer(fabric, Transfer(tmp_path / "in", "h000", "h003")))
            # Packets of the transfer before this one may arrive still, and say nothing of this one's processes.
            await eventually(lambda: len([*fabric.workers]) == 2, DEADLINE_S)
            placed = (await fabric.totals())["bytes_placed"]
            while (await fabric.totals())["bytes_placed"] == placed:
                assert not sending.done()
            (worker,) = [child for child in fabric.workers if child.name == killed]
            os.kill(worker.pid, signal.SIGKILL)
            with pytest.raises(WorkerFailedError, match=f"the workload process at {nic} has died: SIGKILL"):
                await sending
            await eventually(lambda: not [*fabric.workers], DEADLINE_S)
        assert fabric.unexpected_deaths() == []
        # What gets shorter meanwhile is told by whoever reads it.
        sending = asyncio.create_task(transfer(fabric, Transfer(tmp_path / "in", "h000", "h003")))
        await eventually(lambda: [*fabric.workers], DEADLINE_S)
        os.truncate(tmp_path / "in", MESSAGE_BYTES)
        with pytest.raises(WorkerFailedError, match="h000: the file got shorter while it was being sent"):
            await sending
        # What is in the way of a copy stays until something of it arrives.
        (tmp_path / "out").write_bytes(b"a former one")
        child = fabric.daemons.members["h003"].child
        assert child is not None
        await fabric.daemons.end(child)
        with pytest.raises(RefusedError, match="h003 is down"):
            await transfer(fabric, Transfer(tmp_path / "in", "h000", "h003", tmp_path / "out"))
        assert (tmp_path / "out").read_bytes() == b"a former one"


@pytest.mark.integration
@pytest.mark.parametrize("ends", [("h000", "h001"), ("h001", "h000")])
async def test_a_nic_that_is_down_is_named(fabric: Fabric, tmp_path: Path, ends: tuple[str, str]) -> None:
    (tmp_path / "in").write_bytes(b"x")
    await broken(fabric, "nic_crash", "h001")
    await eventually(lambda: not fabric.alive("h001"), DEADLINE_S)
    with pytest.raises(RefusedError, match=r"^h001 is down$"):
        await transfer(fabric, Transfer(tmp_path / "in", *ends))


@pytest.mark.parametrize(
    ("source", "target", "name", "text"),
    [
        ("h000", "h000", "full", "itself"),
        ("h000", "h09", "full", "no such|nearest"),
        ("h000", "p0-t0-0", "full", "p0-t0-0"),
        ("h000", "h001", "empty", "0 bytes"),
        ("h000", "h001", "missing", "No such file"),
        ("h000", "h001", "", "directory"),
        ("h000", "h001", "pipe", "is a pipe"),
        ("h000", "h001", "/dev/zero", "is a device"),
        ("h000", "h001", "\0", "null"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_starts(
    tmp_path: Path, source: str, target: str, name: str, text: str
) -> None:
    (tmp_path / "full").write_bytes(b"x")
    (tmp_path / "empty").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=text):
        Transfer(tmp_path / name, source, target).check(SMALL)


@pytest.mark.parametrize(
    ("out", "text"),
    [("no/out", "No such file"), ("", "directory"), ("in", "file to be sent"), ("pipe", "is a pipe"), ("\0", "null")],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_starts(tmp_path: Path, out: str, text: str) -> None:
    (tmp_path / "in").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=f"--out .*{text}"):
        Transfer(tmp_path / "in", "h000", "h001", tmp_path / out).check(SMALL)
    assert (tmp_path / "in").read_bytes() == b"x"
