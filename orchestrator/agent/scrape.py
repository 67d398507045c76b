"""The metrics of all nodes of a fabric on one page, for one scrape of the whole fabric.

Owns the order of asking and rendering. A busy daemon answers when it gets the CPU, so all are asked at once. The
answers are rendered node by node, so that the agent can do other things in between. If daemons are a crowd, fabric time
stands still until all have answered: hundreds of them share a core, and each answer would otherwise wait for all
others. A node that is down or has not answered in time has no series, as on its own page.
"""

import asyncio
from contextlib import nullcontext

import nicd.metrics
import switchd.metrics
from mrcfabric.crowd import is_crowd
from mrcfabric.metrics import merged, text
from orchestrator.fabric.launched import LaunchedFabric

SCRAPE_WALL_S = 4.0
"""A daemon that has not answered by then is left out: to Prometheus a scrape longer than five seconds has failed."""


async def page_of_all(fabric: LaunchedFabric) -> bytes:
    """Make the page in the exposition format."""
    nics = set(fabric.topology.nic_names())
    found = []
    async with fabric.time.still() if is_crowd(fabric.layout.crowd_max) else nullcontext():
        for node, counters in (await fabric.counters(timeout_s=SCRAPE_WALL_S, silent=[])).items():
            collect = nicd.metrics.collect if node in nics else switchd.metrics.collect
            found.append(collect(fabric.topology.name, node, counters))
            await asyncio.sleep(0)
        return await asyncio.to_thread(text, merged(found))
