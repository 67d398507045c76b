"""A real Prometheus beside one fabric: finds it on the machine, configures it, starts it as a child, and ends it.

Owns the process and its files in the run folder. It is forked like a daemon: however the agent or the fork server ends,
the kernel kills the fork server with the agent, and Prometheus with the fork server.
`orchestrator.prometheus.configuration` makes its files.
"""

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import aiohttp

from mrcfabric.errors import ConfigError
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.hosts.placement.site import LOOPBACK
from orchestrator.process import ports
from orchestrator.process.launcher import Child, ProcessFailedError
from orchestrator.prometheus import configuration
from orchestrator.prometheus.rule import Pace

PROGRAM: Final = "prometheus"
ENTRY: Final = "orchestrator.prometheus.exec_program:become"
TARGET_FILES: Final = ("../targets.json",)
"""The agent's list of targets, relative to the configuration's folder."""
READY_WALL_S: Final = 20.0
READY_POLL_S: Final = 0.05
END_WALL_S: Final = 2.0
"""How long it may take to close its files before it is killed with everything else."""
RETENTION_TIME: Final = "1d"
RETENTION_SIZE: Final = "512MB"


def find_program() -> str:
    """Find the installed Prometheus. Raises ConfigError when there is none."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise ConfigError(
            "--with-prometheus", "no program `prometheus` is installed", "on Debian and Ubuntu: apt install prometheus"
        )
    return found


class Beside:
    """A Prometheus that has answered."""

    def __init__(self, url: str, child: Child) -> None:
        self.url = url
        self._child = child

    def record(self) -> dict[str, Any]:
        """Its `url`, and how it `ended`; None while it runs."""
        return {"url": self.url, "ended": None if self._child.alive else self._child.how_it_ended()}


@asynccontextmanager
async def prometheus_beside(fabric: LaunchedFabric, pace: Pace) -> AsyncIterator[Beside]:
    """Run a Prometheus that watches the fabric, for the length of the block; yields when it answers.

    If it ends earlier, the fabric's journal gets a note. Raises ConfigError when none is installed or its files cannot
    be written, ProcessFailedError when it does not start.
    """
    program = find_program()
    folder = fabric.folder.prometheus
    _configure(folder, pace)
    block = ports.allocate(1)
    try:
        listen = f"{LOOPBACK}:{block.base}"
        arguments = {
            "program": program,
            "title": f"mrcfabric {fabric.topology.name} {PROGRAM}",
            "arguments": _options(folder, listen),
            "directory": str(folder),
        }
        child = await fabric.workers.start(PROGRAM, ENTRY, arguments)
        url = f"http://{listen}"
        await _until_ready(child, url)

        def ended(_child: object) -> None:
            fabric.journal.note("prometheus_ended", fabric.now_ns(), how=child.how_it_ended())

        child.ended.add_done_callback(ended)
        try:
            yield Beside(url, child)
        finally:
            # The journal notes only an end that comes before this one.
            child.ended.remove_done_callback(ended)
            await fabric.workers.dismiss(child, signal.SIGTERM, END_WALL_S)
    finally:
        block.close()


def _configure(folder: Path, pace: Pace) -> None:
    try:
        folder.mkdir(exist_ok=True)
        for name, text in configuration.files(pace, TARGET_FILES).items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"folder {folder}", error.strerror or str(error), "name another with --run-dir") from error


def _options(folder: Path, listen: str) -> list[str]:
    return [
        f"--config.file={folder / configuration.CONFIGURATION}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--storage.tsdb.retention.time={RETENTION_TIME}",
        f"--storage.tsdb.retention.size={RETENTION_SIZE}",
        f"--web.listen-address={listen}",
        "--log.level=warn",
    ]


async def _until_ready(child: Child, url: str) -> None:
    """Wait until it is ready. Raises ProcessFailedError when it ends before, or is not ready in time."""
    try:
        async with asyncio.timeout(READY_WALL_S), aiohttp.ClientSession() as session:
            while child.alive and not await _is_ready(session, url):
                await asyncio.wait([child.ended], timeout=READY_POLL_S)
    except TimeoutError:
        raise ProcessFailedError(f"Prometheus has not been ready within {READY_WALL_S:g} s") from None
    if not child.alive:
        raise ProcessFailedError(f"Prometheus did not start: {child.how_it_ended()}")


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/-/ready") as answer:
            return answer.status == HTTPStatus.OK
    except aiohttp.ClientError:
        return False
