"""Runs a switch and a NIC once, shortly, inside the fork server before its first fork.

On first use Python writes into code, types and caches. After this run all daemons share the pages that hold these: half
a megabyte less in each. Both open everything, step on a clock page, answer what the agent and a scrape ask, and stop.
Owns nothing that lasts.
"""

import asyncio
import io
from typing import Any

from setproctitle import getproctitle

from mrcfabric.clock import ClockPage
from mrcfabric.control import ControlClient
from mrcfabric.daemon import Daemon
from mrcfabric.daemon_config import DaemonConfig
from mrcfabric.daemon_process import Build, run_tables
from mrcfabric.topology import Topology
from nicd.daemon import build as build_nic
from orchestrator.hosts.placement.layout import Layout
from orchestrator.hosts.placement.site import LOOPBACK
from switchd.daemon import build as build_switch

ASKED = ("status", "glance", "counters")
_SMALLEST = Topology(name="warmup", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=1)
# The port of the discard service: nothing is sent there.
_PEER = [LOOPBACK, 9]


def warm_up() -> None:
    """Run both kinds of daemon to their end. Raises RuntimeError when one fails."""
    # Keep the fork server's process title: a search for daemons in the list of processes must not find this one.
    title = getproctitle()
    layout = Layout(_SMALLEST, "none")
    _rehearse(layout, "switchd", "p0-t0-0", build_switch, title)
    _rehearse(layout, "nicd", "h000", build_nic, title)


def _rehearse(layout: Layout, kind: str, node: str, build: Build, title: str) -> None:
    asking: list[asyncio.Task[None]] = []

    def asked(config: DaemonConfig, stop: asyncio.Event) -> Daemon:
        daemon = build(config, stop)
        daemon.log_to = io.StringIO()
        asking.append(asyncio.get_running_loop().create_task(_ask(daemon, stop)))
        return daemon

    page = ClockPage.create(layout.peers())
    try:
        page.wake()
        code = run_tables(kind, [_table(layout, node, page.fd)], asked, title)
    finally:
        page.close()
    if code or not asking or asking[0].cancelled():
        raise RuntimeError(f"the first {kind} ended with {code}")
    asking[0].result()


async def _ask(daemon: Daemon, stop: asyncio.Event) -> None:
    """Ask a daemon what the agent asks, once it can be asked; then let it stop."""
    try:
        while not daemon.control.bound:  # noqa: ASYNC110 - a few rounds of the loop, and nobody else needs to know
            await asyncio.sleep(0)
        async with ControlClient(daemon.control.address, daemon.config.realm.of(daemon.config.node)) as client:
            for op in ASKED:
                await client.call(op)
    finally:
        stop.set()


def _table(layout: Layout, node: str, page_fd: int) -> dict[str, Any]:
    """A configuration like one of the agent's, but with any ports."""
    links = [{**link, "local": [LOOPBACK, 0], "peer": _PEER} for link in layout.links_of(node)]
    return {
        "node": node,
        "topology": layout.topology.to_dict(),
        "links": links,
        "control": [LOOPBACK, 0],
        "secret": bytes(32).hex(),
        "clock": {"page_fd": page_fd, "slot": layout.slot(node), "one_host": True},
    }
