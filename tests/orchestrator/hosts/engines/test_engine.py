"""The dialogue with a program that has just been started."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.engine import LINE_BYTES_MAX, Launch, Outputs, first_words, launch_line, lines
from orchestrator.process.launcher import ProcessFailedError


def source(*chunks: bytes) -> asyncio.StreamReader:
    made = asyncio.StreamReader()
    for chunk in chunks:
        made.feed_data(chunk)
    made.feed_eof()
    return made


def outputs(answer: bytes, log: bytes = b"") -> tuple[Outputs, list[str]]:
    heard: list[str] = []
    return Outputs(lines(source(answer)), lines(source(log)), heard.append), heard


async def everything(given: AsyncIterator[str]) -> list[str]:
    return [line async for line in given]


def ended(how: str | None = None) -> "asyncio.Future[str]":
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    if how is not None:
        future.set_result(how)
    return future


async def test_lines_are_whole_whatever_the_chunks() -> None:
    assert await everything(lines(source(b"on", b"e\ntw", b"o\n\nthree"))) == ["one", "two", "", "three"]


async def test_a_long_line_is_cut_and_strange_bytes_are_shown() -> None:
    long = b"x" * (5 * LINE_BYTES_MAX)
    assert await everything(lines(source(long + b"\n\xff\r\n" + long))) == [
        "x" * LINE_BYTES_MAX,
        "\N{REPLACEMENT CHARACTER}",
        "x" * LINE_BYTES_MAX,
    ]


async def test_the_first_line_is_the_answer_and_the_rest_is_the_log() -> None:
    both, heard = outputs(b'{"address": "::1", "port": 7, "pid": 3}\nhello\n', b"warning\n")
    address, told = await first_words("h1", both, ended(), 5.0)
    assert address == ("::1", 7)
    assert told["pid"] == 3
    await both.close(5.0)
    assert sorted(heard) == ["hello", "warning"]
    assert both.last in heard


async def test_a_program_says_why_it_cannot_run() -> None:
    both, _heard = outputs(b'{"where": "run folder", "what": "is in use", "hint": "end the other"}\n')
    with pytest.raises(ConfigError, match=r"^host h1: run folder: is in use \(end the other\)$"):
        await first_words("h1", both, ended(), 5.0)
    await both.close(5.0)


@pytest.mark.parametrize("answer", [b"Traceback\n", b"17\n", b"\n", b'{"port": 7}\n'])
async def test_other_first_words_are_shown(answer: bytes) -> None:
    both, _heard = outputs(answer)
    with pytest.raises(ProcessFailedError, match=r"host h1: the program began with '"):
        await first_words("h1", both, ended(), 5.0)
    await both.close(5.0)


async def test_a_program_that_ends_at_once_is_shown_with_its_reason() -> None:
    both, _heard = outputs(b"")
    with pytest.raises(ProcessFailedError, match="ended before it could be called: exit code 1: no module"):
        await first_words("h1", both, ended("exit code 1: no module"), 5.0)
    await both.close(5.0)


async def test_a_silent_program_is_not_waited_for_for_ever() -> None:
    silent = Outputs(lines(asyncio.StreamReader()), lines(source()), lambda _line: None)
    with pytest.raises(ProcessFailedError, match=r"has not said within 0\.01 s"):
        await first_words("h1", silent, ended(), 0.01)
    await silent.close(0.0)
    assert silent.first.result() is None


def test_the_launch_is_one_line() -> None:
    told = Launch((), {"text": "a\nb"})
    assert launch_line(told) == b'{"text": "a\\nb"}\n'
    # It has a secret, and a dump of variables must not show it.
    assert "text" not in repr(told)
