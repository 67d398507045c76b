"""Files and pipes, with readers that are slow, asleep or gone."""

import asyncio
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.captures import sink as sinks
from orchestrator.captures.sink import Sink


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Sink, int]]:
    """A sink into a named pipe, and its reading end."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with Sink(str(fifo)) as sink:
        yield sink, reader


async def test_a_file_gets_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"what was there before")
    with Sink(str(file)) as sink:
        sink.write(b"one ")
        sink.write(b"two")
        await sink.flush()
    assert file.read_bytes() == b"one two"


async def test_a_slow_reader_is_waited_for(pipe: tuple[Sink, int]) -> None:
    sink, reader = pipe
    data = bytes(range(256)) * 1024
    sink.write(data)
    writing = asyncio.create_task(sink.flush())
    got = b""
    while len(got) < len(data):
        await asyncio.sleep(0)
        try:
            got += os.read(reader, 50_000)
        except BlockingIOError:
            continue
    await writing
    os.close(reader)
    assert got == data
    assert not sink.gone


async def test_a_reader_that_goes_away_is_noticed_with_and_without_something_to_write(pipe: tuple[Sink, int]) -> None:
    sink, reader = pipe
    await sink.flush()
    assert not sink.gone
    os.close(reader)
    await sink.flush()
    assert sink.gone
    sink.write(b"nobody wants it")
    await sink.flush()


async def test_a_reader_that_goes_away_while_it_is_waited_for(pipe: tuple[Sink, int]) -> None:
    sink, reader = pipe
    sink.write(bytes(1 << 20))
    writing = asyncio.create_task(sink.flush())
    for _ in range(5):
        await asyncio.sleep(0)
    os.close(reader)
    await writing
    assert sink.gone


async def test_nobody_waits_long_for_a_reader_that_sleeps_at_the_end(
    pipe: tuple[Sink, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "LAST_WALL_S", 0.01)
    sink, reader = pipe
    sink.write(bytes(1 << 20))
    await sink.flush_last()
    assert sink.gone
    os.close(reader)


async def test_a_full_disk_is_told() -> None:
    with Sink("/dev/full") as sink:
        sink.write(b"x")
        with pytest.raises(RefusedError, match="No space left"):
            await sink.flush()
        assert sink.failed


@pytest.mark.parametrize(
    ("room_bytes", "kept", "said"),
    [(250, 200, "; the file ends after 200 bytes with a whole packet, and later"), (50, 0, "; nothing was written")],
)
async def test_a_file_without_room_ends_with_a_whole_packet(
    tmp_path: Path, room_bytes: int, kept: int, said: str
) -> None:
    file = tmp_path / "x.pcapng"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Sink(str(file)) as sink:
        for number in range(5):
            sink.write(bytes([number]) * 100)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room_bytes, limits[1]))
        try:
            with pytest.raises(RefusedError, match=rf"x\.pcapng: File too large{said}"):
                await sink.flush()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.read_bytes() == b"".join(bytes([number]) * 100 for number in range(kept // 100))


def test_a_file_that_cannot_be_written_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file or directory"):
        Sink(str(tmp_path / "nowhere" / "x"))
