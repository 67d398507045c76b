"""Daemons of a tiny fabric, configured by hand: by the wall clock, on free ports of loopback."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mrcfabric import daemon_config
from mrcfabric.control import ControlClient, Realm
from mrcfabric.daemon import Daemon, link_ends
from mrcfabric.daemon_process import Build, private_page
from mrcfabric.runner import Runner
from mrcfabric.topology import Topology
from tests.support.ports import free_udp_ports

TINY: dict[str, Any] = {
    "name": "tiny", "planes": 1, "t0_per_plane": 1, "t1_per_plane": 1, "nics_per_t0": 2,
    "evs_per_qp": 16, "reserve_evs_per_qp": 4,
}  # fmt: skip
"""h000 and h001 on p0-t0-0, which has one up-link to p0-t1-0."""
SECRET = bytes(range(32))
REALM = Realm(SECRET, "tiny")
DILATION = 20_000.0
HOST = "127.0.0.1"


def tables() -> dict[str, dict[str, Any]]:
    """A configuration for every node of the tiny fabric, with one start of time."""
    topology = Topology.from_dict(TINY)
    names = list(topology.node_names())
    ports = iter(free_udp_ports(2 * topology.link_count + len(names)))
    ends = {(end.link, name): next(ports) for name in names for end in topology.ports(name)}
    epoch_s = time.time()
    return {
        name: {
            "node": name,
            "topology": dict(TINY),
            "links": [
                {
                    "port": end.port,
                    "local": [HOST, ends[end.link, name]],
                    "peer": [HOST, ends[end.link, end.peer]],
                }
                for end in topology.ports(name)
            ],
            "control": [HOST, next(ports)],
            "secret": SECRET.hex(),
            "clock": {"dilation": DILATION, "wall_epoch_s": epoch_s},
        }
        for name in names
    }


class Bench:
    """Daemons that run on the test's own loop, and clients that ask them."""

    def __init__(self) -> None:
        self.daemons: dict[str, Daemon] = {}
        self.clients: dict[str, ControlClient] = {}
        self.stop = asyncio.Event()

    async def call(self, node: str, op: str, /, **args: Any) -> Any:
        return await self.clients[node].call(op, args)

    async def command(self, node: str, op: str, /, **args: Any) -> Any:
        """The result of a command of the core."""
        answer = await self.call(node, "command", op=op, args=args)
        return answer["result"]


@asynccontextmanager
async def daemons(builds: dict[str, Build], changes: dict[str, Any] | None = None) -> AsyncIterator[Bench]:
    """Run the nodes named in `builds` in this process; `changes` go into every configuration, `{node}` is its name."""
    bench = Bench()
    every = tables()
    async with AsyncExitStack() as stack:
        serving: list[asyncio.Task[None]] = []
        for name, build in builds.items():
            own = {
                key: value.replace("{node}", name) if isinstance(value, str) else value
                for key, value in (changes or {}).items()
            }
            config = daemon_config.from_table(every[name] | own)
            page, slots, firsts = private_page([config])
            # One doorbell is enough for daemons that only the wall clock binds.
            runner = Runner(page, _doorbell(stack), shared=False)
            daemon = build(config, bench.stop)
            await daemon.open()
            stack.callback(daemon.close)
            daemon.attach(runner, link_ends(config, -1, firsts[0]), slots[0])
            serving += [asyncio.create_task(daemon.serve()), asyncio.create_task(runner.serve(bench.stop))]
            bench.daemons[name] = daemon
            bench.clients[name] = await stack.enter_async_context(ControlClient(config.control, REALM.of(name)))
        try:
            yield bench
        finally:
            bench.stop.set()
            for task in serving[::2]:
                task.cancel()
            await asyncio.wait(serving)


def _doorbell(stack: AsyncExitStack) -> int:
    doorbell = os.eventfd(0, os.EFD_NONBLOCK)
    stack.callback(os.close, doorbell)
    return doorbell
