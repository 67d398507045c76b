"""Both event loops that daemons meet: the standard one and uvloop."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import uvloop

Run: TypeAlias = Callable[[Any], Any]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine on one kind of loop."""

    def runs(coroutine: Any) -> Any:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(coroutine)

    return runs
