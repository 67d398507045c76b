"""Tasks that nobody waits for: what they fail of is told, and none outlives its owner."""

import asyncio
from typing import Any

import pytest

from mrcfabric.errors import RefusedError
from orchestrator.background import Background


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
