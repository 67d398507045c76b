"""Fixtures: a fabric whose agent answers, and the configuration that names it to actions and probes."""

from collections.abc import AsyncIterator

import pytest

from chaosmrc.session import FOLDER_KEY, close_all
from orchestrator.fabric import Fabric
from tests.chaosmrc.asking import beside
from tests.orchestrator.conftest import agent, fabric, pack, served

__all__ = ["agent", "fabric", "pack", "served"]


@pytest.fixture
async def configuration(served: Fabric) -> AsyncIterator[dict[str, str]]:
    yield {FOLDER_KEY: str(served.folder.path)}
    await beside(close_all)
