"""Fixtures: a small fabric as an object (`fabric`, or `served` with its agent), or left behind by a command."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from orchestrator.agent import Agent
from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, SMALL, SMALL_FLAGS, ask, run


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[Fabric]:
    async with Fabric.launch(SMALL, tmp_path / "small") as one:
        yield one


@pytest.fixture
async def served(fabric: Fabric) -> AsyncIterator[Fabric]:
    """A fabric whose agent answers."""
    agent = Agent(fabric)
    ready = asyncio.Event()
    serving = asyncio.create_task(agent.serve(ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait([serving, waiting], timeout=DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
    assert waiting.done(), serving
    yield fabric
    agent.stop.set()
    assert await serving is None


@pytest.fixture
def detached(tmp_path: Path) -> Iterator[Path]:
    """The folder in which `out/small` runs, left behind by `mrcfabric up --detach`."""
    ask(tmp_path, "up", *SMALL_FLAGS, "--detach")
    yield tmp_path
    run(tmp_path, "down")
