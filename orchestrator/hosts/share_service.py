"""The standing service of a host: whoever proves that he has the cluster's key has shares started there.

It starts `orchestrator.hosts.share_agent` and nothing else, as a child, below its own folder of runs; passes on what
the agent says, and how it ends; ends it when asked. Every share has its own conversation, over which it was asked for;
when that breaks, the share goes on, for it has a lease of its own, and can be ended over another. Shares end with the
service: in good order when it is told to stop, by the kernel when it is killed.

Messages are maps in msgpack over a `KeyedStream`. The service begins: `{"version", "python", "machine"}`. It is asked
`{"op": "launch", "sealed": the launch}` once, and answers `{"launched": name, "told": the agent's first line}`,
`{"refused": [where, what, hint]}` or `{"failed": text}`; `{"line": text}` comes for each line of log, `{"ended": how}`
at the end. `{"op": "stop", "launch": name}` is answered, when nothing of it is left, by `{"stopped": name}`.

The launch is JSON, sealed with the key: `{"host": its name for messages, "message": what the agent reads, "ports":
[kind, address, port] to be free before, "ready_wall_s"}`.
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
"""Shares at a time, of all fabrics."""
CALLERS_MAX: Final = 256
"""Conversations at a time with those who have the key."""
UNSENT_BYTES_MAX: Final = 1 << 20
"""Lines of log are left out while a caller takes nothing and so much waits for him."""


class ShareService:
    """All shares of one service, and who has asked for them."""

    def __init__(self, key: ClusterKey, run_dir: Path, say: Callable[[str], None]) -> None:
        """`say` hears what the service and its shares have to tell, line by line."""
        self.stop = asyncio.Event()
        """Set: end all shares, then return from `serve`."""
        self._key = key
        self._run_dir = run_dir.absolute()
        self._say = say
        self._engine = LocalEngine()
        self._strangers: Strangers = {}
        self._callers: dict[KeyedStream, bool] = {}
        """Everybody who has the key, and whether he has asked for his share."""
        self._starting: dict[KeyedStream, asyncio.Task[None]] = {}
        self._shares: dict[str, LocalProgram] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turned_away = 0

    async def serve(self, listen: Address, ready: Callable[[Address], None]) -> None:
        """Until `stop` is set. `ready` is called with the address once it can be called. Raises OSError."""
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
        # Whoever asked for them is told how they ended.
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
            # Whoever floods the port is not to flood the log.
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

    # What they ask for.

    def _understood(self, stream: KeyedStream, order: dict[str, Any]) -> tuple[Host, Launch]:
        """What to start, and what its host is called. Raises ValueError, TypeError, KeyError."""
        message = dict(order["message"])
        label = f"{message['fabric']}, launch {message['epoch']}"
        # Where its folders are is ours to say, and it is not to outlive us.
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
        """Start a share and see it to its end."""
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
    """Start no share; once, for what is ending one already must not be broken off."""
    if not starting.cancelling():
        starting.cancel()


def _tell(stream: KeyedStream, message: dict[str, Any]) -> None:
    stream.send(msgpack.packb(message))
