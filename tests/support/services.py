"""Standing share services for tests: of this process, on loopback, or as `mrcfabric share` in one of its own."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator.hosts.cluster_key import ClusterKey, write_new
from orchestrator.hosts.engines.engine import AGENT, Launch, Listening
from orchestrator.hosts.placement.inventory import Host, Service
from orchestrator.hosts.share_service import ShareService

LOOPBACK = "127.0.0.1"
SECRET = bytes(range(7, 39))
"""Of a launch: what must be seen nowhere."""


@dataclass
class Standing:
    """A service that runs."""

    key: Path
    run_dir: Path
    said: list[str] = field(default_factory=list)
    address: tuple[str, int] = (LOOPBACK, 0)
    pid: int = 0
    """Of its process; 0 when it is this one."""

    def host(self, address: tuple[str, int] | None = None, key: Path | None = None) -> Host:
        """As an inventory describes it, or by way of another address, or with another key."""
        where, port = address or self.address
        return replace(Host.at("vm2", LOOPBACK), service=Service(where, port, str(key or self.key)))


def launch(
    ports: tuple[Listening, ...] = (), on_line: Callable[[str], None] = lambda _line: None, **message: Any
) -> Launch:
    """A share's, that listens on loopback; `message`: what else its launch says."""
    told = {"secret": SECRET.hex(), "fabric": "small", "epoch": 7, "number": 1, "listen": [LOOPBACK, 0]}
    return Launch(AGENT, told | {"run_dir": "elsewhere"} | message, ports, on_line=on_line)


def key_in(folder: Path, name: str = "cluster.key") -> Path:
    """A new key."""
    write_new(folder / name)
    return folder / name


@asynccontextmanager
async def standing(folder: Path) -> AsyncIterator[Standing]:
    """A service of this process; it has ended after the block."""
    one = Standing(key_in(folder), folder / "runs")
    service = ShareService(ClusterKey.read(one.key), one.run_dir, one.said.append)
    ready = asyncio.Event()

    def listens(address: tuple[str, int]) -> None:
        one.address = address
        ready.set()

    serving = asyncio.create_task(service.serve(one.address, listens))
    await ready.wait()
    try:
        yield one
    finally:
        service.stop.set()
        await serving


@asynccontextmanager
async def apart(folder: Path, environment: Mapping[str, str] | None = None) -> AsyncIterator[Standing]:
    """A service in a process of its own; killed after the block if it still runs."""
    one = Standing(key_in(folder), folder / "runs")
    words = ("share", "--listen", f"{LOOPBACK}:0", "--key", str(one.key), "--run-dir", str(one.run_dir))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "orchestrator.cli", *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        one.said.append(line)
        one.address = (LOOPBACK, int(line.partition(" port ")[2].partition(";")[0]))
        one.pid = process.pid
        yield one
    finally:
        if process.returncode is None:
            process.kill()
        one.said += (await process.stdout.read()).decode().splitlines()
        await process.wait()
