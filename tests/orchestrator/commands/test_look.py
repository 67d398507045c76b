"""`mrcfabric events`: what happened where."""

import asyncio
import json

import pytest

from orchestrator.fabric import Fabric
from tests.orchestrator.running import ask, broken, connect

pytestmark = pytest.mark.integration


async def command(fabric: Fabric, *arguments: str) -> str:
    folder = fabric.folder.path
    return await asyncio.to_thread(ask, folder, *arguments, "--run-dir", str(folder))


async def test_events_of_a_node_and_of_the_agent(served: Fabric) -> None:
    await connect(served)
    await broken(served, "nic_port_down", "h001:1")
    events = [json.loads(line) for line in (await command(served, "events", "h001", "--json")).splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds[:3] == ["qp_change"] * 3
    assert "port_change" in kinds
    later = await command(served, "events", "h001", "--json", "--since", str(events[-1]["n"]))
    assert later == ""
    assert "ready  daemons=10 processes=10" in await command(served, "events")
    assert (await command(served, "events", "-n", "1")).count("\n") == 1
