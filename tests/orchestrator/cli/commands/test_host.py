"""`mrcfabric host` where there is but this one; over several, tests/integration/test_over_ssh.py shows what it says."""

import asyncio

import pytest

from orchestrator.fabric import Fabric
from tests.orchestrator.running import ask, fails

pytestmark = pytest.mark.integration


async def test_a_fabric_of_this_host_alone(served: Fabric) -> None:
    folder = served.folder.path
    which = ("--run-dir", str(folder))
    assert await asyncio.to_thread(ask, folder, "host", "list", *which) == "this fabric stands on one host alone\n"
    assert await asyncio.to_thread(ask, folder, "host", "list", "--json", *which) == "[]\n"
    refused = await asyncio.to_thread(fails, folder, "host", "restart", "vm1", *which)
    assert refused == "mrcfabric: host vm1: is none of this fabric's (it stands on one host alone)\n"
