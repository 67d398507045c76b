"""A control server with ops to count, and a bare socket that says what it likes to it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mrcfabric.control import ControlServer, Realm
from mrcfabric.control_message import PROTOCOL_VERSION, seal, unseal
from mrcfabric.errors import RefusedError

REALM = Realm(b"0123456789abcdef", "demo", 3)
LOOPBACK = ("127.0.0.1", 0)


class CountingOps:
    """Ops with something to count."""

    def __init__(self) -> None:
        self.calls = 0
        self.gate = asyncio.Event()

    async def add(self, args: dict[str, Any]) -> Any:
        self.calls += 1
        return args["a"] + args["b"]

    async def long(self, args: dict[str, Any]) -> Any:
        self.calls += 1
        return [bytes([index % 251]) * 1000 for index in range(args["kb"])]

    async def refuse(self, args: dict[str, Any]) -> Any:
        raise RefusedError(f"not with {sorted(args)}")

    async def wait(self, args: dict[str, Any]) -> Any:
        self.calls += 1
        await self.gate.wait()
        return "done"

    def ops(self) -> dict[str, Any]:
        return {"add": self.add, "long": self.long, "refuse": self.refuse, "wait": self.wait}


@asynccontextmanager
async def serving(ops: CountingOps, realm: Realm = REALM, **options: Any) -> AsyncIterator[ControlServer]:
    server = ControlServer(LOOPBACK, realm, ops.ops(), **options)
    await server.open()
    task = asyncio.create_task(server.serve())
    try:
        yield server
    finally:
        task.cancel()
        await asyncio.wait([task])
        server.close()


def request_of(op: str, ident: tuple[int, int], args: dict[str, Any] | None = None, /, **fields: Any) -> bytes:
    message = {
        "v": PROTOCOL_VERSION,
        "fabric": REALM.fabric,
        "epoch": REALM.epoch,
        "incarnation": None,
        "id": ident,
        "op": op,
        "args": args or {},
        "page": 0,
    }
    return seal(message | fields, REALM.secret)


class Peer:
    """A bare socket that says what it likes."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.connect(address)

    def send(self, datagram: bytes) -> None:
        self.socket.send(datagram)

    async def answer(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        loop.add_reader(self.socket, lambda: future.done() or future.set_result(self.socket.recv(65536)))
        try:
            async with asyncio.timeout(5):
                message = unseal(await future, REALM.secret)
        finally:
            loop.remove_reader(self.socket)
        assert isinstance(message, dict)
        return message

    async def ask(self, datagram: bytes) -> dict[str, Any]:
        self.send(datagram)
        return await self.answer()


@asynccontextmanager
async def peer_of(server: ControlServer) -> AsyncIterator[Peer]:
    peer = Peer(server.address)
    try:
        yield peer
    finally:
        peer.socket.close()
