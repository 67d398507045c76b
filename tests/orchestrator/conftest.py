"""Fixtures: a small fabric as an object (`fabric`, or `served` with its agent), or left behind by a command."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from orchestrator.agent.agent import Agent
from orchestrator.fabric import Fabric
from orchestrator.mapper.link_testing import LinkTesting
from tests.orchestrator.running import DEADLINE_S, SMALL, SMALL_FLAGS, ask, run

ASKING = {"agent", "api", "captures", "cli", "client", "live", "mapper", "prometheus", "tracing", "web"}
"""Folders whose tests ask a fabric or tell it to do something, and are not about its processes; so do all elsewhere."""


@pytest.fixture
def pack(request: pytest.FixtureRequest) -> str:
    """Which daemons of the fabric share a process; modules that need it otherwise say so."""
    here = Path(__file__).parent
    asks = not request.path.is_relative_to(here) or request.path.relative_to(here).parts[0] in ASKING
    return "cores" if asks else "none"


@pytest.fixture
async def fabric(tmp_path: Path, pack: str) -> AsyncIterator[Fabric]:
    async with Fabric.launch(SMALL, tmp_path / "small", pack=pack) as one:
        yield one


@pytest.fixture
async def links(fabric: Fabric) -> AsyncIterator[LinkTesting]:
    """Checks of the fabric's links, and watches over them."""
    testing = LinkTesting(fabric, fabric.journal)
    yield testing
    testing.close()


@pytest.fixture
async def agent(fabric: Fabric) -> AsyncIterator[Agent]:
    """The agent of `fabric`, answering."""
    agent = Agent(fabric)
    ready = asyncio.Event()
    serving = asyncio.create_task(agent.serve(ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait([serving, waiting], timeout=DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
    assert waiting.done(), serving
    yield agent
    agent.stop.set()
    assert await serving is None


@pytest.fixture
async def served(agent: Agent, fabric: Fabric) -> Fabric:
    """A fabric whose agent answers."""
    return fabric


@pytest.fixture
def detached(tmp_path: Path, pack: str) -> Iterator[Path]:
    """The folder in which `out/small` runs, left behind by `mrcfabric up --detach`."""
    ask(tmp_path, "up", *SMALL_FLAGS, "--detach", "--pack", pack)
    yield tmp_path
    run(tmp_path, "down")
