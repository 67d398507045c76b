"""Tasks that nobody waits for: what they fail of is told, and none outlives its owner."""

import asyncio
from typing import Any

import pytest

from mrcfabric.errors import RefusedError
from orchestrator.process.background import Background, first_to_end


async def test_expected_failures_are_told_and_others_are_the_loops() -> None:
    told: list[str] = []
    unexpected: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unexpected.append(context["exception"]))
    background = Background((RefusedError,), lambda about, error: told.append(f"{about}: {error}"))

    async def fail(error: Exception) -> None:
        raise error

    refused = background.start(fail(RefusedError("no")), "h000")
    with pytest.raises(RefusedError):
        await refused
    broken = background.start(fail(KeyError("bug")))
    await asyncio.wait([broken])
    await asyncio.sleep(0)
    assert told == ["h000: no"]
    assert [type(error) for error in unexpected] == [KeyError]


async def test_none_outlives_its_owner() -> None:
    background = Background((), lambda _about, _error: None)
    forever = background.start(asyncio.Event().wait())
    await background.close()
    assert forever.cancelled()
    await background.close()


async def test_the_first_exception_ends_everything() -> None:
    ended: list[str] = []

    async def stays(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await first_to_end(stays("work"), fails(), forever=stays("watch"))
    assert sorted(ended) == ["watch", "work"]
    with pytest.raises(ValueError, match="broken"):
        await first_to_end(stays("work"), forever=fails())


async def test_the_background_ends_with_the_last_work() -> None:
    watching = asyncio.Event()

    async def watch() -> None:
        watching.set()
        await asyncio.Event().wait()

    await asyncio.wait_for(first_to_end(watching.wait(), forever=watch()), 10)
