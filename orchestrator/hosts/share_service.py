"""The standing service of a host: it starts shares for every caller who proves that he has the cluster's key.

It starts `orchestrator.hosts.share_agent` and nothing else, as a child, below its own folder of runs. It passes on the
agent's lines and its end, and ends it on request. Every share is asked for over a connection of its own. When that
breaks, the share goes on, for it has its own lease, and a request over another connection can end it. Shares end with
the service: in good order when the service is told to stop, by the kernel when the service is killed.

Messages are maps in msgpack over a `KeyedStream`. The service begins with `{"version", "python", "machine"}`. A caller
sends `{"op": "launch", "sealed": the launch}` once. The service answers `{"launched": name, "told": the agent's first
line}`, `{"refused": [where, what, hint]}` or `{"failed": text}`. Then it sends `{"line": text}` for each line of log,
and `{"ended": how}` at the end. It answers `{"op": "stop", "launch": name}` with `{"stopped": name}`, when nothing of
it is left.

The launch is JSON, sealed with the key: `{"host": its name for messages, "message": what the agent reads, "ports":
[kind, address, port] that must be free before, "ready_wall_s"}`.
"""

import asyncio
import json
import os
import platform
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgpack

from mrcfabric.control_message import Address
from mrcfabric.errors import ConfigError
from orchestrator.hosts.cluster_key import ClusterKey
from orchestrator.hosts.engines.engine import AGENT, READY_WALL_S, Launch, Listening
from orchestrator.hosts.engines.local import LocalEngine, LocalProgram
from orchestrator.hosts.placement.inventory import Host
from orchestrator.process.keyed_stream import Endpoint, KeyedStream, Strangers
from orchestrator.process.launcher import ProcessFailedError

PURPOSE: Final = b"launch"
NUMBER: Final = 0
SHARES_MAX: Final = 64
"""Shares at a time, over all fabrics."""
CALLERS_MAX: Final = 256
"""Connections at a time from callers who have the key."""
UNSENT_BYTES_MAX: Final = 1 << 20
"""The service drops lines of log for a caller while so much waits for him unread."""


class ShareService:
    """All shares of one service, and the callers who asked for them."""

    def __init__(self, key: ClusterKey, run_dir: Path, say: Callable[[str], None]) -> None:
        """`say` receives the lines of the service and of its shares."""
        self.stop = asyncio.Event()
        """Set: end all shares, then return from `serve`."""
        self._key = key
        self._run_dir = run_dir.absolute()
        self._say = say
        self._engine = LocalEngine()
        self._strangers: Strangers = {}
        self._callers: dict[KeyedStream, bool] = {}
        """Connections of callers who have the key -> whether the caller has asked for his share."""
        self._starting: dict[KeyedStream, asyncio.Task[None]] = {}
        self._shares: dict[str, LocalProgram] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turned_away = 0

    async def serve(self, listen: Address, ready: Callable[[Address], None]) -> None:
        """Serve until `stop` is set. Calls `ready` with the address once it listens. Raises OSError."""
        server = await asyncio.get_running_loop().create_server(self._accept, *listen)
        address = server.sockets[0].getsockname()
        ready((address[0], address[1]))
        try:
            await self.stop.wait()
        finally:
            server.close()
            await self._close()

    async def _close(self) -> None:
        for stream in [*self._strangers]:
            stream.close("the service ends")
        for task in self._starting.values():
            _give_up(task)
        await asyncio.gather(*(share.stop() for share in self._shares.values()))
        # Each caller is told how his share ended.
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)
        for stream in [*self._callers]:
            stream.close("the service ends")

    # Callers.

    def _accept(self) -> KeyedStream:
        endpoint = Endpoint(self._key.realm, NUMBER, PURPOSE)
        return KeyedStream(endpoint, self._ready, self._message, self._lost, self._strangers)

    def _ready(self, stream: KeyedStream) -> None:
        if self.stop.is_set() or len(self._callers) >= CALLERS_MAX:
            stream.close("too many callers")
            return
        self._callers[stream] = False
        python, machine = platform.python_version(), platform.node()
        _tell(stream, {"version": version("mrcfabric"), "python": python, "machine": machine})

    def _lost(self, stream: KeyedStream, why: str) -> None:
        if stream.peer < 0:
            self._turned_away += 1
            # Say it at powers of two only: a flood of callers must not flood the log.
            if self._turned_away & (self._turned_away - 1) == 0:
                self._say(f"turned away {self._turned_away} so far who did not prove that they have the key: {why}")
            return
        self._callers.pop(stream, None)
        if (starting := self._starting.get(stream)) is not None:
            _give_up(starting)

    def _message(self, stream: KeyedStream, message: bytes) -> None:
        try:
            match msgpack.unpackb(message):
                case {"op": "launch"} if self.stop.is_set():
                    stream.close("the service ends")
                case {"op": "launch", "sealed": bytes(sealed)} if not self._callers[stream]:
                    self._callers[stream] = True
                    order = json.loads(self._key.unseal(sealed))
                    self._starting[stream] = self._begin(self._launch(stream, *self._understood(stream, order)))
                case {"op": "stop", "launch": str(name)}:
                    self._begin(self._stop(stream, name))
                case _:
                    raise ValueError("nobody answers that")
        except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
            stream.close(f"it asks amiss: {error!r}")
            self._say(f"hung up on a caller who asks amiss: {error!r}")

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Requests.

    def _understood(self, stream: KeyedStream, order: dict[str, Any]) -> tuple[Host, Launch]:
        """Read a launch: the host, and what to start on it. Raises ValueError, TypeError, KeyError."""
        message = dict(order["message"])
        label = f"{message['fabric']}, launch {message['epoch']}"
        # The service decides where run folders are, and the share must not outlive it.
        message |= {"run_dir": str(self._run_dir), "parent": os.getpid()}
        ports = tuple(Listening(kind, str(address), int(port)) for kind, address, port in order["ports"])

        def relay(line: str) -> None:
            self._say(f"{label}: {line}")
            if stream.unsent_bytes < UNSENT_BYTES_MAX:
                _tell(stream, {"line": line})

        within_s = min(float(order["ready_wall_s"]), READY_WALL_S)
        launch = Launch(AGENT, message, ports, on_line=relay, ready_wall_s=within_s)
        return replace(Host.at(str(order["host"]), ""), run_dir=str(self._run_dir)), launch

    async def _launch(self, stream: KeyedStream, host: Host, launch: Launch) -> None:
        """Start a share, and tell the caller about it until it ends."""
        label = f"{launch.message['fabric']}, launch {launch.message['epoch']}"
        try:
            if len(self._shares) + len(self._starting) > SHARES_MAX:
                hint = "end some, or share more hosts"
                raise ConfigError(f"host {host.name}", f"has {SHARES_MAX} shares already", hint)
            share = await self._engine.start(host, launch)
        except ConfigError as error:
            self._say(f"{label}: refused: {error}")
            _tell(stream, {"refused": [error.where, error.what, error.hint]})
            return
        except (ProcessFailedError, OSError) as error:
            self._say(f"{label}: failed: {error}")
            _tell(stream, {"failed": str(error)})
            return
        finally:
            del self._starting[stream]
        name = secrets.token_hex(8)
        self._shares[name] = share
        self._say(f"{label}: started for {stream.caller}, called at {share.address[0]} port {share.address[1]}")
        _tell(stream, {"launched": name, "told": dict(share.told)})
        await asyncio.wait([share.ended])
        del self._shares[name]
        how = share.ended.result()
        self._say(f"{label}: ended: {how}")
        _tell(stream, {"ended": how})

    async def _stop(self, stream: KeyedStream, name: str) -> None:
        if (share := self._shares.get(name)) is not None:
            await share.stop()
        _tell(stream, {"stopped": name})


def _give_up(starting: asyncio.Task[None]) -> None:
    """Cancel a start, once only: a second cancel would break off the cleaning up after the first."""
    if not starting.cancelling():
        starting.cancel()


def _tell(stream: KeyedStream, message: dict[str, Any]) -> None:
    stream.send(msgpack.packb(message))
