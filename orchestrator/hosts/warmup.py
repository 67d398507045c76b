"""Runs a switch and a NIC once, shortly, inside the fork server before its first fork.

On first use Python writes into code, types and caches. After this run all daemons share the pages that hold these: half
a megabyte less in each. Owns nothing that lasts: the daemons get a pipe whose other end is closed, so they open
everything, see that their agent is gone, and stop.
"""

import os
from typing import Any

from setproctitle import getproctitle

from mrcfabric.topology import Topology
from nicd.daemon import run_nicd
from orchestrator.hosts.placement.layout import Layout
from orchestrator.hosts.placement.site import LOOPBACK
from switchd.daemon import run_switchd

_SMALLEST = Topology(name="warmup", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=1)
# The port of the discard service: nothing is sent there.
_PEER = [LOOPBACK, 9]


def warm_up() -> None:
    """Run both kinds of daemon to their end. Raises RuntimeError when one fails."""
    # Keep the fork server's process title: a search for daemons in the list of processes must not find this one.
    title = getproctitle()
    layout = Layout(_SMALLEST, "none")
    agent_gone, agent = os.pipe()
    os.close(agent)
    try:
        codes = (
            run_switchd([_table(layout, "p0-t0-0", agent_gone)], title=title),
            run_nicd(_table(layout, "h000", agent_gone), title=title),
        )
    finally:
        os.close(agent_gone)
    if any(codes):
        raise RuntimeError(f"the first daemons ended with {codes}")


def _table(layout: Layout, node: str, agent_gone: int) -> dict[str, Any]:
    """A configuration like one of the agent's, but with any ports and with the wall clock."""
    links = [{**link, "local": [LOOPBACK, 0], "peer": _PEER} for link in layout.links_of(node)]
    return {
        "node": node,
        "topology": layout.topology.to_dict(),
        "links": links,
        "control": [LOOPBACK, 0],
        "secret": bytes(32).hex(),
        "alive_fd": agent_gone,
    }
