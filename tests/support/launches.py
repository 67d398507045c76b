"""Launches of `tests.support.launched`, and what tests say to it once it runs."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.hosts.engines.engine import Launch, Listening, Running
from orchestrator.hosts.placement.inventory import Host, Ssh
from tests.support import cluster as clusters
from tests.support.cluster import Cluster
from tests.support.wait import eventually

PROGRAM = Path(__file__).with_name("launched.py")
DEADLINE_S = 20.0
# A name that nothing else has, so that a search for it finds what a test has let out.
SECRET = "cfd1a5f0secret"


def launch(
    address: str,
    *,
    ports: tuple[Listening, ...] = (),
    files: dict[str, bytes] | None = None,
    on_line: Callable[[str], None] = lambda _line: None,
    ready_wall_s: float = DEADLINE_S,
    **message: Any,
) -> Launch:
    """The program listens on any port of the address; `message`: what else its launch says."""
    told = {"listen": [address, 0], "secret": SECRET} | message
    return Launch(("-P", str(PROGRAM)), told, ports, files or {}, on_line, ready_wall_s)


def described(hosts: Cluster, host: clusters.Host, python: str) -> Host:
    """A host of the cluster as an inventory has it; its run folder is `mrcfabric` in its own."""
    ssh = Ssh(host.address, clusters.SSH_PORT, clusters.USER, str(hosts.user_key), str(hosts.known_hosts))
    return Host(host.name, host.address, host.address, ssh, python=python)


async def say(running: Running, words: str) -> str:
    """Connect to the program from the network that this thread is in, say one line, hear one."""
    reader, writer = await asyncio.open_connection(*running.address)
    writer.write(f"{words}\n".encode())
    answer = await asyncio.wait_for(reader.read(), DEADLINE_S)
    writer.close()
    await writer.wait_closed()
    return answer.decode()


async def facts(running: Running) -> dict[str, Any]:
    """What the program knows of itself."""
    told: dict[str, Any] = json.loads(await say(running, "tell"))
    return told


async def ends(running: Running) -> str:
    """Wait for its end; how it ended."""
    await eventually(running.ended.done, DEADLINE_S)
    return running.ended.result()
