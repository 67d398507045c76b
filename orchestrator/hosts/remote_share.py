"""The leader's end of a share on another host: sends requests, receives answers and deaths, gives up a silent share.

Owns the connection to one `orchestrator.hosts.share_agent`. When the connection breaks, it connects again and repeats
every request that has no answer yet. A share is lost when it has been silent for its lease and for the time it may then
take to end. By that time it has ended its processes itself, so they all count as dead.
"""

import asyncio
import contextlib
import errno
import functools
import itertools
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack

from mrcfabric.control_message import Address, Realm
from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.layout import ProcessPlan
from orchestrator.hosts.placement.site import LEADER, Site
from orchestrator.hosts.remote_workers import carry
from orchestrator.hosts.share import RELAY, Descriptors
from orchestrator.hosts.share_agent import PURPOSE
from orchestrator.process.host_lease import LEASE_S, beat_s
from orchestrator.process.keyed_stream import HUNG_UP, Endpoint, KeyedStream, call
from orchestrator.process.launcher import EXIT_WALL_S, Child, ProcessFailedError

OPEN_WALL_S = 10.0
"""How long it may take to connect to a share at the address that it has just named."""
RECALL_S = 0.2
BEAT_ID = 0
_REFUSED = os.strerror(errno.ECONNREFUSED)
DOUBT_S = 1.0
"""A share that its engine no longer sees and that has hung up on us is given up if it stays away for this long."""
END_WALL_S = 2.0
ASK_WALL_S = 30.0
KILLED = "it was killed, as asked"


class RemoteShare:
    """One host's share, reached over the network. After `open` and `furnish` it is a `Share`."""

    def __init__(self, site: Site, number: int, address: Address, realm: Realm, lease_s: float = LEASE_S) -> None:
        """`address` is where the share agent of that host listens."""
        self.site = site
        self.number = number
        self.folder = Path()
        self.descriptors = Descriptors(-1, -1, -1, {})
        self.on_death: Callable[[Child], None] = lambda _child: None
        self.on_reached: Callable[[dict[int, list[int]]], None] = lambda _reached: None
        """Called before a death with slot -> what the process had reached (`ClockPage.reached`)."""
        self.on_lost: Callable[[str], None] = lambda _why: None
        """Called once, with the reason, when the share is given up, but not when we asked for its kill.

        The deaths of its processes follow."""
        self.on_found: Callable[[dict[str, Any]], None] = lambda _report: None
        """Called with what its relay has measured about a host (`orchestrator.hosts.clock.peer_survey`)."""
        self.full = False
        self.cores_line = ""
        self.heard: set[int] = set()
        """The hosts that its relay hears."""
        self._address = address
        self._beat_s = beat_s(lease_s)
        self._patience_s = lease_s + 2 * self._beat_s + EXIT_WALL_S
        self._endpoint = Endpoint(realm, LEADER, PURPOSE)
        self._ids = itertools.count(1)
        self._answers: dict[int, tuple[bytes, asyncio.Future[dict[str, Any]]]] = {}
        """Requests that have no answer yet."""
        self._children: dict[int, Child] = {}
        self._early: dict[int, dict[str, Any]] = {}
        self._stream: KeyedStream | None = None
        self._first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heard_s = time.monotonic()
        self._keeping: list[asyncio.Task[None]] = []
        self._carrying: set[asyncio.Task[None]] = set()
        """Tasks that carry packets between workers there and the code here that started them."""
        self.workers: set[str] = set()
        """The names of all workers started there so far."""
        self._closing = False
        self._killed = False
        self._why = "it has not been reached"
        self._hung_up = False
        """Whether the share closed the last connection, rather than falling silent."""
        self._unseen: str | None = None
        """Why its engine no longer sees it, or None."""
        self.lost: str | None = None
        """Why it has been given up, or None."""
        self._over: str | None = None
        """Why it takes no more requests, or None."""

    async def open(self) -> None:
        """Connect to the share agent. Raises ProcessFailedError when it ends, ConfigError when it cannot be reached."""
        loop = asyncio.get_running_loop()
        self._keeping = [loop.create_task(self._keep_calling())]
        try:
            if not (await asyncio.wait([self._first], timeout=OPEN_WALL_S))[0]:
                address, port = self._address
                what = f"its share does not answer at {address} port {port}, where it listens: {self._why}"
                hint = "TCP from here to its control address must pass, at the ports that its kernel gives"
                raise ConfigError(f"host {self.site.name}", what, hint)
            self._first.result()
        except BaseException:
            await self.close()
            raise
        self._keeping.append(loop.create_task(self._keep_beating()))

    async def close(self) -> None:
        """End the share and everything in it. Safe to repeat, in every state."""
        if not self._closing:
            self._closing = True
            # Tell a share that may run something to end. If it is not heard, it is told on connecting again, if soon.
            if self._stream is not None or self.descriptors.page >= 0:
                with contextlib.suppress(ProcessFailedError, ConfigError):
                    await self._ask("end", timeout_s=END_WALL_S)
        keeping, self._keeping = [*self._keeping, *self._carrying], []
        for task in keeping:
            task.cancel()
        if keeping:
            await asyncio.wait(keeping)
        self._refuse(f"host {self.site.name}: its share has been ended")

    async def kill(self) -> None:
        """Have everything there killed at once. Returns when it is gone, at the latest when its lease has run out."""
        self._killed = True
        with contextlib.suppress(ProcessFailedError):  # a killed share does not answer; the request then fails
            await self._ask("kill", timeout_s=None)

    def fail(self, why: str) -> None:
        """Give the share up without waiting for the lease: it has ended, or soon will."""
        if self._closing:
            return
        self._closing = True
        why = KILLED if self._killed else why
        self.lost = why
        for task in self._keeping:
            if task is not asyncio.current_task():
                task.cancel()
        error = f"host {self.site.name} is lost: {why}"
        self._send(msgpack.packb({"id": next(self._ids), "op": "end"}))  # in case it still hears us
        if not self._first.done():
            self._first.set_exception(ProcessFailedError(error))
        self._refuse(error)
        if not self._killed:
            self.on_lost(why)
        for ident in list(self._children):
            self._bury({"child": ident, "status": -signal.SIGKILL, "words": error, "reached": {}})

    def _refuse(self, why: str) -> None:
        """Let every open request and every later one fail with this reason."""
        self._over = self._over or why
        for _, answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ProcessFailedError(why))

    def doubt(self, why: str) -> None:
        """Note that its engine no longer sees it. While our own connection stands, only silence counts."""
        self._unseen = why
        if not self._closing:
            self._keeping.append(asyncio.get_running_loop().create_task(self._doubt(why)))

    async def _doubt(self, why: str) -> None:
        await asyncio.sleep(DOUBT_S)
        if self._stream is None and self._hung_up:
            self.fail(why)

    # The connection.

    async def _keep_calling(self) -> None:
        while True:
            await call(self._address, KeyedStream(self._endpoint, self._ready, self._message, self._lost))
            await asyncio.sleep(RECALL_S)

    async def _keep_beating(self) -> None:
        while (silent_s := time.monotonic() - self._heard_s) < self._patience_s:
            self._send(msgpack.packb({"id": BEAT_ID, "op": "beat"}))
            await asyncio.sleep(min(self._beat_s, self._patience_s - silent_s))
        self.fail(f"not heard for {silent_s:.0f} s: {self._why}")

    def _ready(self, stream: KeyedStream) -> None:
        if stream.peer != self.number:
            stream.close(f"host {stream.peer} of the fabric answers in its place")
            return
        self._stream = stream
        self._why = "it says nothing"
        self._hung_up = False
        self._heard_s = time.monotonic()
        if not self._first.done():
            self._first.set_result(None)
        for request, _ in self._answers.values():
            stream.send(request)

    def _lost(self, stream: KeyedStream, why: str) -> None:
        if self._closing:
            return
        self._why = why
        ours, knew = self._stream is stream, self._hung_up
        if ours:
            self._stream = None
        # The host's kernel says that the share is gone: it closed our connection, or refuses new ones.
        gone = why == _REFUSED or (ours and why == HUNG_UP)
        self._hung_up = gone or (knew and not ours)
        if gone and not knew and self._unseen is not None:
            self.doubt(self._unseen)

    def _send(self, request: bytes) -> None:
        if self._stream is not None:
            self._stream.send(request)

    def _message(self, _stream: KeyedStream, message: bytes) -> None:
        self._heard_s = time.monotonic()
        told = msgpack.unpackb(message, strict_map_key=False)
        event = told.get("event")
        if event == "died":
            self._bury(told)
        elif event == "relay":
            if "heard" in told:
                self.heard = set(told["heard"])
            else:
                self.on_found(told)
        elif told["id"] == BEAT_ID:
            self.full = told["ok"]["full"]
        elif told["id"] in self._answers and not (answer := self._answers[told["id"]][1]).done():
            answer.set_result(told)

    async def _ask(self, op: str, timeout_s: float | None = ASK_WALL_S, **args: Any) -> Any:
        """Send a request and return its answer.

        Raises ConfigError when the share refuses. Raises ProcessFailedError when the share is lost or ended, or when it
        is heard and has not answered within `timeout_s` (None: wait as long as it lives). While the share is silent,
        this goes on waiting, but not for the answer to `end`.
        """
        if self._over is not None:
            raise ProcessFailedError(self._over)
        ident = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        request = msgpack.packb({"id": ident, "op": op, **args})
        self._answers[ident] = request, answer
        try:
            self._send(request)
            while not (await asyncio.wait([answer], timeout=timeout_s))[0]:
                assert timeout_s is not None
                if op == "end" or time.monotonic() - self._heard_s < timeout_s:
                    raise ProcessFailedError(f"host {self.site.name}: no answer to {op} within {timeout_s:g} s")
            told = answer.result()
        finally:
            del self._answers[ident]
        if "refused" in told:
            where, what, hint = told["refused"]
            raise ConfigError(f"host {self.site.name}: {where}" if where else f"host {self.site.name}", what, hint)
        return told["ok"]

    # Requests.

    async def machine(self) -> dict[str, Any]:
        """The cores, load and name of the host."""
        return dict(await self._ask("machine"))

    async def reserve(self, size: int, base: int) -> None:
        """Reserve a block of ports there. Raises ConfigError when it is in use."""
        await self._ask("reserve", size=size, base=base)

    @property
    def furnished(self) -> bool:
        """Whether it has a run folder."""
        return self.folder != Path()

    async def furnish(self, settings: dict[str, Any]) -> None:
        """Have the folder claimed, and page and doorbells made there."""
        found = await self._ask("furnish", **settings)
        self.folder = Path(found["folder"])
        self.cores_line = found["cores_line"]
        self.descriptors = Descriptors(found["page"], found["alive"], found["agent_doorbell"], found["doorbells"])

    async def start_relay(self) -> None:
        """Have its relay started."""
        self._adopt(RELAY, await self._ask("relay"))

    async def spawn(self, plan: ProcessPlan, tables: Mapping[str, Any], orders: dict[int, int]) -> list[Child]:
        """See `Share`."""
        born = await self._ask(
            "spawn", name=plan.name, entry=plan.entry, nodes=plan.nodes, tables=tables, orders=orders
        )
        lives = itertools.repeat(None) if not plan.shared else itertools.count()
        return [self._adopt(node, one, life) for node, one, life in zip(tables, born, lives, strict=False)]

    async def signal(self, child: Child, number: int, *, whole: bool = False) -> bool:
        """See `Share`."""
        ident = next((ident for ident, one in self._children.items() if one is child), None)
        return ident is not None and bool(await self._ask("signal", child=ident, number=number, whole=whole))

    async def spawn_worker(
        self, name: str, entry: str, arguments: Any, preload: Sequence[str], channel: socket.socket | None
    ) -> Child:
        """See `Share`."""
        assert channel is not None
        own = channel.dup()
        try:
            born = await self._ask("worker", name=name, entry=entry, arguments=arguments, preload=list(preload))
        except BaseException:
            own.close()
            raise
        self.workers.add(name)
        child = Child(name, born[1], None, asyncio.get_running_loop().create_future())
        ask = functools.partial(self._ask, timeout_s=None)
        task = asyncio.get_running_loop().create_task(carry(ask, born[0], child, own))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        return child

    async def read(self, path: str, offset: int, limit: int) -> tuple[bytes, int]:
        """A part of a file of the run folder there, and the size of the whole file."""
        part = await self._ask("read", path=path, offset=offset, limit=limit)
        return part["bytes"], part["size"]

    def _adopt(self, name: str, born: list[int], life: int | None = None) -> Child:
        ident, pid = born
        child = self._children[ident] = Child(name, pid, None, asyncio.get_running_loop().create_future(), life=life)
        if ident in self._early:
            self._bury(self._early.pop(ident))
        return child

    def _bury(self, told: dict[str, Any]) -> None:
        child = self._children.pop(told["child"], None)
        if child is None:
            self._early[told["child"]] = told  # the death overtook the answer to `spawn`, or is reported a second time
            return
        self.on_reached(told["reached"])
        child.words, child.asked_for = told["words"], self._killed
        child.ended.set_result(told["status"])
        self.on_death(child)
        if child.name == RELAY and not self._killed:
            self.fail(f"its relay has ended: {child.how_it_ended()}")
