"""The leader's end of a share on another host: requests, answers, deaths, and what follows when it is heard no more.

Owns the conversation with one `orchestrator.hosts.share_agent`, which it opens again when it is lost; a share that
stays silent for the lease is lost, and with it every process it had, since by then it has ended them itself.
"""

import asyncio
import contextlib
import itertools
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack

from mrcfabric.control_message import Address, Realm
from mrcfabric.errors import ConfigError
from orchestrator.hosts.keyed_stream import Door, KeyedStream
from orchestrator.hosts.share import COURIER, Descriptors
from orchestrator.hosts.share_agent import LEASE_S, PURPOSE
from orchestrator.hosts.site import LEADER, Site
from orchestrator.launcher import Child, ProcessFailedError
from orchestrator.layout import ProcessPlan

BEAT_S = 1.0
RECALL_S = 0.2
ASK_WALL_S = 30.0


class RemoteShare:
    """One host's share, asked over the network. `open` it, `furnish` it, then it is a `Share`."""

    def __init__(self, site: Site, number: int, address: Address, realm: Realm, lease_s: float = LEASE_S) -> None:
        """`address` is where the share agent of that host listens."""
        self.site = site
        self.number = number
        self.folder = Path()
        self.descriptors = Descriptors(-1, -1, -1, {})
        self.on_death: Callable[[Child], None] = lambda _child: None
        self.on_reached: Callable[[dict[int, int]], None] = lambda _reached: None
        """Called before a death with slot -> instant that the process had reached."""
        self.on_lost: Callable[[str], None] = lambda _why: None
        """Called once, with the reason, when the share is given up; deaths of its processes follow."""
        self.heard: set[int] = set()
        """The hosts that its courier hears."""
        self._address = address
        self._lease_s = lease_s
        self._door = Door(realm, LEADER, PURPOSE)
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._children: dict[int, Child] = {}
        self._early: dict[int, tuple[int, str]] = {}
        self._stream: KeyedStream | None = None
        self._stands = asyncio.Event()
        self._heard_s = time.monotonic()
        self._keeping: asyncio.Task[None] | None = None
        self._closing = False
        self._why = "it has not been reached"

    @property
    def lost(self) -> bool:
        """Whether it has been given up."""
        return self._closing

    async def open(self) -> None:
        """Call the share agent. Raises ProcessFailedError when it does not answer within the lease."""
        self._heard_s = time.monotonic()
        self._keeping = asyncio.get_running_loop().create_task(self._keep())
        try:
            async with asyncio.timeout(self._lease_s):
                await self._stands.wait()
        except TimeoutError:
            await self.close()
            raise ProcessFailedError(f"host {self.site.name}: its share does not answer: {self._why}") from None

    async def close(self) -> None:
        """End the share and everything in it. Safe to repeat, whatever state it is in."""
        if self._closing:
            return
        self._closing = True
        if self._stream is not None and self._stream.ready:
            with contextlib.suppress(ProcessFailedError, ConfigError):
                await self._ask("end", timeout_s=2.0)
        await self._forget()

    async def _forget(self) -> None:
        if self._keeping is not None and self._keeping is not asyncio.current_task():
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        if self._stream is not None:
            self._stream.close()

    # The conversation.

    async def _keep(self) -> None:
        """Beat while it is heard, call again when not, give up after the lease."""
        loop = asyncio.get_running_loop()
        while True:
            if self._stream is None:
                with contextlib.suppress(OSError):
                    await loop.create_connection(
                        lambda: KeyedStream(self._door, self._ready, self._message, self._lost), *self._address
                    )
                await asyncio.sleep(RECALL_S)
            else:
                self._send({"id": 0, "op": "beat"})
                await asyncio.sleep(BEAT_S)
            if time.monotonic() - self._heard_s >= self._lease_s:
                await self._give_up(f"not heard for {self._lease_s:g} s: {self._why}")
                return

    async def _give_up(self, why: str) -> None:
        """Its own lease has run out too: whatever ran there has ended."""
        if self._closing:
            return
        self._closing = True
        await self._forget()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ProcessFailedError(f"host {self.site.name} is lost: {why}"))
        self.on_lost(why)
        for ident in list(self._children):
            self._bury(ident, -signal.SIGKILL, f"host {self.site.name} is lost: {why}")

    def fail(self, why: str) -> None:
        """Somebody knows that the share agent has ended: do not wait for the lease."""
        self._why = why
        self._lease_s = 0.0

    def _ready(self, stream: KeyedStream) -> None:
        self._stream = stream
        self._heard_s = time.monotonic()
        self._stands.set()

    def _lost(self, stream: KeyedStream, why: str) -> None:
        self._why = why
        if self._stream is stream:
            self._stream = None

    def _send(self, request: dict[str, Any]) -> bool:
        if self._stream is None or not self._stream.ready:
            return False
        self._stream.send(msgpack.packb(request))
        return True

    def _message(self, _stream: KeyedStream, message: bytes) -> None:
        self._heard_s = time.monotonic()
        told = msgpack.unpackb(message, strict_map_key=False)
        event = told.get("event")
        if event == "died":
            if told["child"] in self._children:
                self.on_reached(told["reached"])
            self._bury(told["child"], told["status"], told["words"])
        elif event == "courier":
            if "up" in told:
                self.heard.add(told["up"])
            else:
                self.heard.discard(told["down"])
        elif (answer := self._answers.get(told["id"])) is not None and not answer.done():
            answer.set_result(told)

    async def _ask(self, op: str, timeout_s: float = ASK_WALL_S, **args: Any) -> Any:
        """Raises ConfigError (its refusal), ProcessFailedError (not heard, or not in time)."""
        ident = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[ident] = answer
        try:
            if not self._send({"id": ident, "op": op, **args}):
                raise ProcessFailedError(f"host {self.site.name} is not heard: {self._why}")
            async with asyncio.timeout(timeout_s):
                told = await answer
        except TimeoutError:
            raise ProcessFailedError(f"host {self.site.name}: no answer to {op} within {timeout_s:g} s") from None
        finally:
            del self._answers[ident]
        if "refused" in told:
            where, what, hint = told["refused"]
            raise ConfigError(f"host {self.site.name}: {where}", what, hint)
        return told["ok"]

    # What it is asked.

    async def machine(self) -> dict[str, Any]:
        """What the host has."""
        return dict(await self._ask("machine"))

    async def reserve(self, size: int, base: int) -> None:
        """Reserve a block of ports there. Raises ConfigError when it is in use."""
        await self._ask("reserve", size=size, base=base)

    async def furnish(self, settings: dict[str, Any]) -> None:
        """Claim the folder, make page and doorbells there."""
        found = await self._ask("furnish", **settings)
        self.folder = Path(found["folder"])
        self.descriptors = Descriptors(found["page"], found["alive"], found["agent_doorbell"], found["doorbells"])

    async def start_courier(self) -> None:
        """Fork its courier."""
        self._adopt(COURIER, await self._ask("courier"))

    async def spawn(self, plan: ProcessPlan, tables: Any, orders: dict[int, int]) -> Child:
        """See `Share`."""
        born = await self._ask("spawn", name=plan.name, entry=plan.entry, arguments=tables, orders=orders)
        return self._adopt(plan.name, born)

    async def signal(self, child: Child, number: int) -> bool:
        """See `Share`."""
        ident = next((ident for ident, one in self._children.items() if one is child), None)
        return ident is not None and bool(await self._ask("signal", child=ident, number=number))

    async def read(self, path: str, offset: int, limit: int) -> tuple[bytes, int]:
        """(bytes, size) of a file of the run folder there."""
        part = await self._ask("read", path=path, offset=offset, limit=limit)
        return part["bytes"], part["size"]

    def _adopt(self, name: str, born: list[int]) -> Child:
        ident, pid = born
        child = self._children[ident] = Child(name, pid, None, asyncio.get_running_loop().create_future())
        if ident in self._early:
            self._bury(ident, *self._early.pop(ident))
        return child

    def _bury(self, ident: int, status: int, words: str) -> None:
        child = self._children.pop(ident, None)
        if child is None:
            self._early[ident] = (status, words)  # the report overtook the answer, or is told for the second time
            return
        child.words = words
        child.ended.set_result(status)
        self.on_death(child)
