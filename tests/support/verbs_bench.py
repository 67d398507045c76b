"""Loopback NICs behind real verbs servers, on Unix sockets of the running loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from nicd.verbs import AsyncDevice, Cqe, QueuePair
from nicd.verbs_client import VerbsLimits
from nicd.verbs_server import VerbsServer
from tests.support.loopback_nics import LoopbackNic


@asynccontextmanager
async def verbs_bench(
    folder: Path, count: int = 2, limits: VerbsLimits | None = None
) -> AsyncIterator[tuple[list[LoopbackNic], list[VerbsServer]]]:
    """`count` NICs of one group, each served at `folder/hNNN`."""
    nics: list[LoopbackNic] = []
    servers: list[VerbsServer] = []
    for index in range(count):
        nic = LoopbackNic(index, nics, lambda events: None)
        nics.append(nic)
        server = VerbsServer(str(folder / f"h{index:03d}"), nic.command, f"h{index:03d}", index, limits)
        nic.on_events = server.deliver
        server.start()
        servers.append(server)
    try:
        yield nics, servers
    finally:
        for server in servers:
            server.close()


async def connected(one: AsyncDevice, two: AsyncDevice) -> tuple[QueuePair, QueuePair]:
    """A QP at each end, both ready to send."""
    a, b = await one.create_qp(), await two.create_qp(psn=7)
    await one.connect(a, b.local)
    await two.connect(b, a.local)
    await one.start(a)
    await two.start(b)
    return a, b


async def completions(device: AsyncDevice, count: int) -> AsyncIterator[Cqe]:
    """The next `count` completions, in order."""
    while count:
        for cqe in await device.poll_cq(count, timeout_s=10):
            count -= 1
            yield cqe
