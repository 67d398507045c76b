"""The process that NICs and switches share: which daemon it makes of which node."""

import asyncio

from mrcfabric import daemon_config
from orchestrator.hosts.shared_process_entry import build
from tests.support.daemons import tables


async def test_each_node_gets_the_daemon_of_its_kind() -> None:
    kinds = {node: build(daemon_config.from_table(table), asyncio.Event()).kind for node, table in tables().items()}
    assert kinds == {"h000": "nic", "h001": "nic", "p0-t0-0": "switch", "p0-t1-0": "switch"}
