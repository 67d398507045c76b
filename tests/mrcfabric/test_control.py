"""Both ends of the control channel over loopback sockets, on the standard loop and on uvloop."""

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.control import (
    ControlClient,
    ControlLimits,
    ControlServer,
    NoAnswerError,
    Realm,
    new_secret,
    read_secret,
    write_secret,
)
from mrcfabric.control_message import MAC_BYTES, PAGE_BYTES, PROTOCOL_VERSION, seal, unseal
from mrcfabric.errors import ConfigError, RefusedError

REALM = Realm(b"0123456789abcdef", "demo", 3)
LOOPBACK = ("127.0.0.1", 0)
Run = Callable[[Awaitable[Any]], Any]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine on one kind of loop."""

    def runs(coroutine: Any) -> Any:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(coroutine)

    return runs


class Desk:
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
async def serving(desk: Desk, **options: Any) -> AsyncIterator[ControlServer]:
    server = ControlServer(LOOPBACK, REALM, desk.ops(), **options)
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


def test_calls_and_refusals(run: Run) -> None:
    async def body() -> None:
        desk = Desk()
        async with serving(desk) as server, ControlClient(server.address, REALM) as client:
            sums = await asyncio.gather(*(client.call("add", {"a": index, "b": 1}) for index in range(50)))
            assert sums == list(range(1, 51))
            with pytest.raises(RefusedError, match=r"not with \['why'\]"):
                await client.call("refuse", {"why": 1})
            with pytest.raises(RefusedError, match="unknown op 'ad'; known: add, long"):
                await client.call("ad")
            assert server.counters()["refused"] == 2

    run(body())


def test_long_answers_come_in_pages(run: Run) -> None:
    async def body() -> None:
        desk = Desk()
        async with serving(desk) as server, ControlClient(server.address, REALM) as client:
            answer = await client.call("long", {"kb": 300})
            assert answer == await desk.long({"kb": 300})
            assert desk.calls == 2
            assert server.counters()["requests"] == 1

    run(body())


def test_a_repeated_request_runs_once(run: Run) -> None:
    async def body() -> None:
        desk = Desk()
        async with serving(desk) as server, peer_of(server) as peer:
            datagram = request_of("wait", (7, 1))
            peer.send(datagram)
            assert (await peer.ask(datagram))["status"] == "pending"
            desk.gate.set()
            assert (await peer.answer())["status"] == "ok"
            assert (await peer.ask(datagram))["status"] == "ok"
            assert desk.calls == 1
            assert server.duplicates == 2

    run(body())


def test_a_forgotten_request_is_refused_not_run_again(run: Run) -> None:
    async def body() -> None:
        desk = Desk()
        limits = ControlLimits(answers_max=2)
        async with serving(desk, limits=limits) as server, peer_of(server) as peer:
            for sequence in range(4):
                args = {"a": sequence, "b": 0}
                assert (await peer.ask(request_of("add", (7, sequence), args)))["status"] == "ok"
            answer = await peer.ask(request_of("add", (7, 0), {"a": 0, "b": 0}))
            assert answer["status"] == "refused"
            assert (await peer.ask(request_of("add", (8, 0), page=1)))["status"] == "refused"
            assert desk.calls == 4

    run(body())


def test_too_many_requests_at_once_are_refused(run: Run) -> None:
    async def body() -> None:
        desk = Desk()
        limits = ControlLimits(pending_max=1)
        async with serving(desk, limits=limits) as server, peer_of(server) as peer:
            peer.send(request_of("wait", (7, 1)))
            answer = await peer.ask(request_of("wait", (7, 2)))
            assert answer["status"] == "refused"
            assert b"busy" in answer["body"]

    run(body())


def test_another_incarnation_and_another_version_are_refused(run: Run) -> None:
    async def body() -> None:
        desk = Desk()
        async with serving(desk, incarnation=2) as server:
            async with ControlClient(server.address, REALM, incarnation=1) as client:
                with pytest.raises(RefusedError, match="incarnation 1 is gone, this is 2"):
                    await client.call("add", {"a": 1, "b": 1})
            async with ControlClient(server.address, REALM, incarnation=2) as client:
                assert await client.call("add", {"a": 1, "b": 1}) == 2
            async with peer_of(server) as peer:
                answer = await peer.ask(request_of("add", (7, 1), v=99))
                assert b"version 1" in answer["body"]

    run(body())


def test_strangers_are_dropped_and_counted(run: Run) -> None:
    async def body() -> None:
        desk = Desk()
        async with serving(desk) as server, peer_of(server) as peer:
            good = request_of("add", (7, 1), {"a": 1, "b": 1})
            peer.send(b"short")
            peer.send(good[:-1])
            peer.send(bytes(MAC_BYTES) + good[MAC_BYTES:])
            peer.send(seal({"v": 1}, b"another secret!!"))
            peer.send(request_of("add", (7, 1), fabric="other"))
            peer.send(request_of("add", (7, 1), epoch=2))
            peer.send(request_of("add", (7, 1), op=5))
            peer.send(request_of("add", (7, 1), page=-1))
            peer.send(request_of("add", (7, 1), id=[1]))
            assert (await peer.ask(good))["status"] == "ok"
            drops = {"short": 1, "bad_mac": 3, "other_fabric": 2, "malformed": 3}
            assert server.counters()["drops"] == drops
            assert desk.calls == 1

    run(body())


def test_no_answer_says_whom_and_why(run: Run) -> None:
    async def body() -> None:
        desk = Desk()
        async with serving(desk) as server:
            async with ControlClient(server.address, REALM) as client:
                with pytest.raises(NoAnswerError, match=r"wait: no answer from 127.0.0.1:.*carried out"):
                    await client.call("wait", timeout_s=0.3)
            wrong = Realm(b"another secret!!", "demo", 3)
            async with ControlClient(server.address, wrong) as client:
                with pytest.raises(NoAnswerError):
                    await client.call("add", {"a": 1, "b": 1}, timeout_s=0.1)
            address = server.address
        async with ControlClient(address, REALM) as client:
            with pytest.raises(NoAnswerError, match="refused"):
                await client.call("add", {"a": 1, "b": 1}, timeout_s=0.3)

    run(body())


def test_a_daemon_that_starts_late_is_found(run: Run) -> None:
    async def body() -> None:
        desk = Desk()
        async with serving(desk) as server:
            address = server.address
        async with ControlClient(address, REALM) as client:
            call = asyncio.create_task(client.call("add", {"a": 2, "b": 3}))
            late = ControlServer(address, REALM, desk.ops())
            await late.open()
            serve = asyncio.create_task(late.serve())
            assert await call == 5
            serve.cancel()
            await asyncio.wait([serve])

    run(body())


def test_an_address_in_use_is_the_operators_mistake(run: Run) -> None:
    async def body() -> None:
        async with serving(Desk()) as server:
            with pytest.raises(ConfigError, match=r"control 127.0.0.1:"):
                await ControlServer(server.address, REALM, {}).open()

    run(body())


def test_a_request_that_does_not_fit_a_datagram_is_refused(run: Run) -> None:
    async def body() -> None:
        async with serving(Desk()) as server, ControlClient(server.address, REALM) as client:
            with pytest.raises(RefusedError, match="at most 32768"):
                await client.call("add", {"a": bytes(PAGE_BYTES)})

    run(body())


@given(st.binary(max_size=200))
def test_random_bytes_never_raise(datagram: bytes) -> None:
    assert isinstance(unseal(datagram, REALM.secret), str)
    body = seal({}, REALM.secret)
    assert unseal(body, REALM.secret) == {}
    mac = hashlib.blake2b(datagram, key=REALM.secret, digest_size=16, person=b"mrcfabric-ctl").digest()
    assert isinstance(unseal(mac + datagram, REALM.secret), str | dict)


def test_secret_files(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    secret = new_secret()
    write_secret(path, secret)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_secret(path) == secret
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="other users"):
        read_secret(path)
    path.write_text("zz")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="not hexadecimal"):
        read_secret(path)
    path.write_text("00")
    with pytest.raises(ConfigError, match="1 bytes"):
        read_secret(path)
    with pytest.raises(ConfigError, match="cannot read"):
        read_secret(tmp_path / "absent")
