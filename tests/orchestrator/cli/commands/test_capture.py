"""`mrcfabric capture`: files and pipes from the command line, and how it ends."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import pytest

from mrcfabric.wire.pcapng import Captured, captured
from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, MRCFABRIC, ask, connect, fails, processes_of
from tests.support.packages import program
from tests.support.tshark import DISSECTORS, tshark
from tests.support.wait import eventually, eventually_blocking

pytestmark = pytest.mark.integration


@asynccontextmanager
async def capturing(fabric: Fabric, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`mrcfabric capture` beside the test; what it says at its end is on standard error."""
    command = [MRCFABRIC, "capture", *arguments, "--run-dir", str(fabric.folder.path)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ended(process: asyncio.subprocess.Process) -> str:
    """What it said; it must have ended well."""
    assert process.stderr is not None
    async with asyncio.timeout(DEADLINE_S):
        said = (await process.stderr.read()).decode()
        assert await process.wait() == 0, said
    return said


async def write(fabric: Fabric, length: int = 8 * 4096) -> None:
    """One write from h000 to h001, finished."""
    await fabric.command("h000", "post_write", {**await connect(fabric), "length": length, "wr_id": 1})
    await eventually(fabric.time.page.all_idle, DEADLINE_S)


def packets(data: bytes) -> list[Captured]:
    return list(captured(BytesIO(data), "x"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_file_in_good_order(served: Fabric, tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "x.pcapng"
    async with capturing(served, "h000~*", "-w", str(file), "--snap", "0") as process:
        await eventually(lambda: file.exists() and file.stat().st_size, DEADLINE_S)
        await write(served)
        process.send_signal(number)
        said = await ended(process)
    found = packets(file.read_bytes())
    assert f"{len(found)} packets, {file.stat().st_size} bytes in {file}: it was stopped" in said
    assert len(found) > 8
    assert max(len(one.packet) for one in found) > 4096
    assert not any(one.cut_bytes for one in found)


async def test_a_pipe_is_fed_while_it_goes_on_and_a_reader_that_leaves_ends_it(served: Fabric) -> None:
    async with capturing(served, "of=h000", "plane=0", "-w", "-") as process:
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            data = await process.stdout.read(1)
            await write(served)
            while b"wall 2" not in data:
                data += await process.stdout.read(65_536)
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
        assert "its reader has gone" in await ended(process)
    assert b"h000>p0-t0-0" in data


@pytest.mark.long
async def test_a_reader_that_sleeps_does_not_keep_a_signal_waiting(served: Fabric, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    async with capturing(served, "-w", str(fifo), "--snap", "0") as process:
        await eventually(lambda: _filled(reader), DEADLINE_S)
        await write(served, 1 << 20)
        process.send_signal(signal.SIGINT)
        await ended(process)
    os.close(reader)


def _filled(reader: int) -> bool:
    try:
        return bool(os.read(reader, 1))
    except BlockingIOError:
        return False


@pytest.mark.parametrize("end", ["down", "killed"])
def test_the_end_of_the_fabric_is_the_end_of_the_file(detached: Path, end: str) -> None:
    file = detached / "x.pcapng"
    command = [MRCFABRIC, "capture", "-w", str(file)]
    with subprocess.Popen(command, cwd=detached, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("capturing")
        eventually_blocking(lambda: file.stat().st_size, DEADLINE_S)
        if end == "down":
            ask(detached, "down")
        else:
            os.kill(processes_of(detached)[0], signal.SIGKILL)
        said = process.communicate(timeout=DEADLINE_S)[1]
    assert process.returncode == 0
    size = file.stat().st_size
    assert said == f"0 packets, {size} bytes in {file}: the fabric has ended\n"
    assert tshark("-r", str(file)) == ""


async def test_tshark_reads_the_pipe_while_it_is_written(served: Fabric) -> None:
    reading, writing = os.pipe()
    scripts = [f"-Xlua_script:{script}" for script in DISSECTORS]
    asked = ("-l", "-i", "-", "-c", "8", "-Tfields", "-e", "frame.interface_name", "-e", "mrc.opcode")
    shark = await asyncio.create_subprocess_exec(
        program("tshark"), *scripts, *asked, stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    os.close(reading)
    command = [MRCFABRIC, "capture", "of=h000", "-w", "-", "--run-dir", str(served.folder.path)]
    process = await asyncio.create_subprocess_exec(*command, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            assert (await process.stderr.readline()).startswith(b"capturing")
            await write(served)
            rows = [line.split("\t") for line in (await shark.communicate())[0].decode().splitlines()]
        assert "its reader has gone" in await ended(process)
    finally:
        for one in (shark, process):
            if one.returncode is None:
                one.kill()
                await one.communicate()
    assert len(rows) == 8
    assert {way for way, _ in rows} <= {"h000>p0-t0-0", "h000>p1-t0-0", "p0-t0-0>h000", "p1-t0-0>h000"}
    assert {int(opcode, 16) for _, opcode in rows} & {0xC6, 0xC7}


async def test_only_what_was_asked_for(served: Fabric, tmp_path: Path) -> None:
    await connect(served)
    file = tmp_path / "x.pcapng"
    flags = ("--qp", "h000:5", "--kind", "ack", "--kind", "sack", "--direction", "down", "--count", "2")
    async with capturing(served, "of=h000", *flags, "-w", str(file)) as process:
        await eventually(lambda: file.exists() and file.stat().st_size, DEADLINE_S)
        region = await served.command("h001", "register_memory", {"va": 0, "length": 1 << 20})
        local = await served.command("h000", "register_memory", {"va": 0, "length": 1 << 20})
        posted = {"qpn": 5, "local_region": local["region_id"], "local_va": 0, "length": 1 << 20, "remote_va": 0}
        await served.command("h000", "post_write", {**posted, "r_key": region["r_key"], "wr_id": 1})
        said = await ended(process)
    assert "2 packets" in said
    assert len(packets(file.read_bytes())) == 2


async def test_mistakes_are_one_line_and_leave_no_file(served: Fabric, tmp_path: Path) -> None:
    await connect(served)
    where = ("--run-dir", str(served.folder.path))
    mistakes = {
        ("p0-t9-0~p0-t1-0",): "no such",
        ("--plane", "7"): "plane 7: no such plane (0 to 1)",
        ("--kind", "read"): "no such kind of packet (one of data, ack",
        ("--qp", "h000:99"): "no such QP (h000 has: 5)",
        ("--snap", "1TB"): "will not do",
        ("--for", "soon"): "is no time",
    }
    for arguments, expected in mistakes.items():
        said = await asyncio.to_thread(fails, tmp_path, "capture", *arguments, "-w", "x.pcapng", *where)
        assert expected in said, said
    assert not (tmp_path / "x.pcapng").exists()


def test_without_a_fabric_nothing_is_captured(tmp_path: Path) -> None:
    assert "none runs below" in fails(tmp_path, "capture", "-w", "x.pcapng")
