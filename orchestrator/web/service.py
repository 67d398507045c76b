"""Runs the live map's server: in the process of a fabric's agent, or in a process of its own.

Owns the port, the address that is printed, and what happens when a fabric ends. In the agent's process the map ends
with the fabric. In its own process the map tells its pages and waits for the fabric to come back. `server` serves the
pages.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.client.agent_fabric import AgentFabric
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.http.connections import Listen, keeping
from orchestrator.web.auth import Auth
from orchestrator.web.event_feed import ReadLog
from orchestrator.web.server import LASTING, Server, Shown
from orchestrator.web.snapshot_loop import LOOK_HZ

HOST: Final = "127.0.0.1"
PORT_BASE: Final = 8787
PORTS: Final = 64
"""Without a port from the operator, the first free one of so many is taken."""
OWNER: Final = "web"
RETURN_POLL_S: Final = 0.5


@asynccontextmanager
async def here(
    fabric: LaunchedFabric,
    read_log: ReadLog,
    port: int | None = None,
    look_hz: float = LOOK_HZ,
    owner_only: bool = False,
) -> AsyncIterator[str]:
    """Serve a fabric that lives in this process; yields the address with the token. Raises ConfigError for a port."""
    fabric.owner = OWNER
    bound = _bound(port)
    auth = Auth(bound.getsockname()[1], owner_only=owner_only)
    server = Server(auth)
    async with (
        keeping(server.app, _at(bound), lasting=LASTING),
        server.showing(Shown(fabric, fabric.folder.path, str(fabric.epoch), read_log), look_hz=look_hz),
    ):
        yield address(auth, bound)


async def beside(
    folder: Path,
    say: Callable[[str], None],
    *,
    port: int | None = None,
    look_hz: float = LOOK_HZ,
    shelves: Sequence[Path] = (),
    owner_only: bool = False,
) -> None:
    """Serve the fabric that runs in `folder`, and each one that runs there after it, until cancelled.

    Calls `say` with the address. Raises ConfigError when no fabric runs there now or the port is not free, RefusedError
    when the fabric cannot be reached.
    """
    bound = _bound(port)
    auth = Auth(bound.getsockname()[1], owner_only=owner_only)
    server = Server(auth)
    told = False
    async with keeping(server.app, _at(bound), lasting=LASTING):
        while True:
            try:
                async with (
                    AgentFabric.open(run_dir=folder, owner=f"{OWNER}-{os.getpid()}") as fabric,
                    server.showing(_shown(fabric, folder), shelves=shelves, look_hz=look_hz),
                ):
                    await fabric.post("/map", owner=fabric.owner, url=address(auth, bound))
                    if not told:
                        say(f"live map of {fabric.topology.name}: {address(auth, bound)}")
                        told = True
                    await asyncio.wait([fabric.ended])
                    server.absence = f"fabric {fabric.topology.name} has ended; this page shows it when it is back"
            except (ConfigError, RefusedError, NoAnswerError):
                if not told:
                    raise
            await asyncio.sleep(RETURN_POLL_S)


def _shown(fabric: AgentFabric, folder: Path) -> Shown:
    async def read_log(body: Mapping[str, Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await fabric.post("/log", **body)
        return found

    return Shown(fabric, folder, str(fabric.epoch), read_log)


def address(auth: Auth, bound: socket.socket) -> str:
    """The address to open in a browser. The browser does not send the fragment, which holds the token."""
    return f"http://{HOST}:{bound.getsockname()[1]}/#token={auth.token}"


def _at(bound: socket.socket) -> Listen:
    return lambda protocols: asyncio.get_running_loop().create_server(protocols, sock=bound)


def _bound(port: int | None) -> socket.socket:
    """Make a socket that listens at `port`, or at the first free port. Raises ConfigError."""
    for candidate in range(PORT_BASE, PORT_BASE + PORTS) if port is None else [port]:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((HOST, candidate))
            # Only a successful listen shows that no other process listens there.
            made.listen()
        except OSError as error:
            made.close()
            why: Any = error.strerror or str(error)
        else:
            return made
    where = f"port {port}" if port is not None else f"ports {PORT_BASE}..{PORT_BASE + PORTS - 1}"
    raise ConfigError(where, str(why), "name another with --port")
