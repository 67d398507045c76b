"""The engine for hosts with a standing share service (`mrcfabric share`): it calls the service, which starts the share.

Owns the life of one share over one connection, with the messages of `orchestrator.hosts.share_service`. When the
connection breaks, nothing is known of the share: `ended` says so, and the share's own lease ends it. A service starts
only shares, and only below its own folder of runs, so it ignores the host's `python` and `run_dir`.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgpack

from mrcfabric.control_message import Address
from mrcfabric.errors import ConfigError
from orchestrator.hosts.cluster_key import ClusterKey
from orchestrator.hosts.engines.engine import AGENT, STOP_WALL_S, UNSEEN, Launch
from orchestrator.hosts.placement.inventory import Host
from orchestrator.hosts.placement.site import LEADER
from orchestrator.hosts.share_service import PURPOSE
from orchestrator.process.keyed_stream import CALL_WALL_S, HELLO_WALL_S, HUNG_UP, Endpoint, KeyedStream, call
from orchestrator.process.launcher import ProcessFailedError

GREETING_WALL_S: Final = CALL_WALL_S + HELLO_WALL_S
ANSWER_MORE_S: Final = 5.0
"""How much longer than the share itself the service may take to report that it has started."""


class ServiceEngine:
    """Asks the services of hosts to start shares."""

    async def start(self, host: Host, launch: Launch) -> "ServiceShare":
        """See `Engine.start`."""
        assert launch.arguments == AGENT, "a service starts shares and nothing else"
        assert not launch.files, "a service takes no files"
        key = await asyncio.to_thread(_key_of, host)
        share = ServiceShare(host, key)
        try:
            await share.begin(launch)
        except BaseException:
            await share.stop()
            raise
        return share


def _key_of(host: Host) -> ClusterKey:
    return ClusterKey.read(Path(host.service.key).expanduser())


class ServiceShare:
    """A share that a service has been asked for; `engine.Running` once `begin` has returned."""

    def __init__(self, host: Host, key: ClusterKey) -> None:
        self.address: Address = ("", 0)
        self.told: Mapping[str, Any] = {}
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._host = host
        self._key = key
        self._name = ""
        self._launch: Launch | None = None
        self._talk = Talk(host, key, self._hear)
        self._answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def begin(self, launch: Launch) -> None:
        """Have the service start it, and learn where it listens. Raises what `Engine.start` raises."""
        self._launch = launch
        await self._talk.open()
        self._talk.over.add_done_callback(self._lost)
        order = {
            "host": self._host.name,
            "message": dict(launch.message),
            "ports": [[port.kind, port.address, port.port] for port in launch.ports],
            "ready_wall_s": launch.ready_wall_s,
        }
        self._talk.say({"op": "launch", "sealed": self._key.seal(json.dumps(order).encode())})
        await asyncio.wait([self._answer], timeout=launch.ready_wall_s + ANSWER_MORE_S)
        match self._answer.result() if self._answer.done() else {}:
            case {"launched": str(name), "told": {"address": str(address), "port": int(port)} as told}:
                self._name, self.address, self.told = name, (address, port), told
            case {"refused": [str(where), str(what), str(hint)]}:
                raise ConfigError(where, what, hint)
            case {"failed": str(why)}:
                raise ProcessFailedError(why)
            case _:
                why = self._talk.over.result() if self._talk.over.done() else "it does not answer"
                raise ProcessFailedError(f"host {self._host.name}: its share service has started nothing: {why}")

    def _hear(self, message: dict[str, Any]) -> None:
        match message:
            case {"line": str(line)}:
                assert self._launch is not None
                self._launch.on_line(line)
            case {"ended": str(how)}:
                if not self.ended.done():
                    self.ended.set_result(how)
            case _:
                if not self._answer.done():
                    self._answer.set_result(message)

    def _lost(self, over: "asyncio.Future[str]") -> None:
        if not self._answer.done():
            self._answer.set_result({})
        if not self.ended.done():
            self.ended.set_result(f"{UNSEEN}: {over.result()}")

    async def stop(self) -> None:
        """See `Running.stop`. Calls the service again if the connection was lost.

        If it cannot be reached, the share's own lease ends the share.
        """
        lost = self.ended.done() and self.ended.result().startswith(UNSEEN)
        if self._name and lost:
            with contextlib.suppress(ConfigError):
                await self._stop_anew()
        elif self._name and not self.ended.done():
            self._talk.say({"op": "stop", "launch": self._name})
            await asyncio.wait([self.ended], timeout=2 * STOP_WALL_S)
        await self._talk.close()

    async def _stop_anew(self) -> None:
        stopped = asyncio.Event()
        talk = Talk(self._host, self._key, lambda _message: stopped.set())
        try:
            await talk.open()
            talk.say({"op": "stop", "launch": self._name})
            talk.over.add_done_callback(lambda _over: stopped.set())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2 * STOP_WALL_S):
                    await stopped.wait()
        finally:
            await talk.close()


class Talk:
    """One connection to the service of a host."""

    def __init__(self, host: Host, key: ClusterKey, hear: Callable[[dict[str, Any]], None]) -> None:
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[str] = loop.create_future()
        """Done, with the reason, when the connection has ended."""
        self._host = host
        self._address = (host.service.address or host.control, host.service.port)
        self._hear = hear
        self._greeting: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._stream = KeyedStream(
            Endpoint(key.realm, LEADER, PURPOSE),
            lambda _stream: None,
            lambda _stream, message: self._take(message),
            self._lost,
        )
        self._calling: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect, and wait for the greeting. Raises ConfigError when no service answers, or one of another version."""
        self._calling = asyncio.get_running_loop().create_task(call(self._address, self._stream))
        either: list[asyncio.Future[Any]] = [self._greeting, self.over]
        await asyncio.wait(either, timeout=GREETING_WALL_S, return_when=asyncio.FIRST_COMPLETED)
        if not self._greeting.done():
            raise self._unanswered(self.over.result() if self.over.done() else "it says nothing")
        theirs, ours = self._greeting.result().get("version"), version("mrcfabric")
        if theirs != ours:
            what = f"its share service is mrcfabric {theirs}, and this is {ours}"
            raise ConfigError(
                f"host {self._host.name}", what, "install the same version on both and restart the service"
            )

    def _unanswered(self, why: str) -> ConfigError:
        host, port = self._address
        if why == HUNG_UP:
            what = f"the share service at {host} port {port} does not take our key"
            hint = f"compare its key with {self._host.service.key}; its log says whom it turned away"
        elif why.startswith("it "):
            what, hint = (
                f"who answers at {host} port {port} is no share service: {why}",
                "name its `service: {port: ...}`",
            )
        else:
            what = f"no share service answers at {host} port {port}: {why}"
            hint = "is `mrcfabric share` running there, and `service` its address and port?"
        return ConfigError(f"host {self._host.name}", what, hint)

    def say(self, message: dict[str, Any]) -> None:
        """Send a message; dropped when the connection has ended."""
        self._stream.send(msgpack.packb(message))

    async def close(self) -> None:
        """End the connection. Safe to repeat."""
        if self._calling is not None:
            self._calling.cancel()
            await asyncio.wait([self._calling])

    def _take(self, message: bytes) -> None:
        try:
            said = msgpack.unpackb(message)
        except (ValueError, msgpack.UnpackException):
            said = None
        if not isinstance(said, dict):
            self._stream.close("it says what nobody understands")
        elif not self._greeting.done():
            self._greeting.set_result(said)
        else:
            self._hear(said)

    def _lost(self, _stream: KeyedStream, why: str) -> None:
        if not self.over.done():
            self.over.set_result(why)
