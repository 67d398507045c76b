"""Conversations between hosts: only who knows the secret of this launch talks, and no stranger's bytes raise."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from mrcfabric.control_message import MAC_BYTES, Realm
from orchestrator.process import keyed_stream
from orchestrator.process.keyed_stream import MESSAGE_BYTES_MAX, Endpoint, KeyedStream, Strangers, call
from tests.support.loops import Run, run
from tests.support.wait import eventually

__all__ = ["run"]
REALM = Realm(bytes(range(32)), "small", 7)
DOOR = Endpoint(REALM, 3, b"relay")
DEADLINE_S = 10.0
HELLO_BYTES = 38 + MAC_BYTES
HEAD_BYTES = 4 + MAC_BYTES


@dataclass
class Ear:
    """What an end hears."""

    streams: list[KeyedStream] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def stream(self, endpoint: Endpoint, strangers: Strangers | None = None) -> KeyedStream:
        return KeyedStream(
            endpoint,
            self.streams.append,
            lambda _stream, message: self.messages.append(message),
            lambda _stream, why: self.lost.append(why),
            strangers,
        )


class House:
    """An endpoint on loopback, who knocked, and whatever the loop had to complain of."""

    def __init__(self) -> None:
        self.ear = Ear()
        self.strangers: Strangers = {}
        self.address = ("127.0.0.1", 0)
        self.complaints: list[dict[str, Any]] = []

    async def refused(self, why: str) -> None:
        """Wait until somebody has been turned away."""
        await eventually(lambda: self.ear.lost, DEADLINE_S)
        assert self.ear.lost == [why]
        assert not self.ear.streams
        assert not self.ear.messages
        assert not self.strangers


@asynccontextmanager
async def house(endpoint: Endpoint = DOOR) -> AsyncIterator[House]:
    one = House()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, complaint: one.complaints.append(complaint))
    server = await loop.create_server(lambda: one.ear.stream(endpoint, one.strangers), *one.address)
    one.address = server.sockets[0].getsockname()
    try:
        yield one
    finally:
        server.close()
        for stream in (*one.strangers, *one.ear.streams):
            stream.close()
            await stream.over.wait()
    assert not one.complaints


@asynccontextmanager
async def visitor(address: tuple[str, int], endpoint: Endpoint) -> AsyncIterator[Ear]:
    """Somebody who calls; hung up at the end."""
    ear = Ear()
    calling = asyncio.create_task(call(address, ear.stream(endpoint)))
    try:
        yield ear
    finally:
        calling.cancel()
        await asyncio.wait([calling])


class Wire:
    """A proxy that records both directions and may change what passes: `change(from the caller, bytes) -> bytes`."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.said = {True: b"", False: b""}
        self.change = lambda _caller, data: data
        self.writers: list[asyncio.StreamWriter] = []

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self.target)
        self.writers += [writer, there_writer]
        await asyncio.gather(self.pump(True, reader, there_writer), self.pump(False, there_reader, writer))

    async def pump(self, caller: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                self.said[caller] += data
                writer.write(self.change(caller, data))
        except ConnectionError:
            pass
        writer.close()


@asynccontextmanager
async def wire(target: tuple[str, int]) -> AsyncIterator[tuple[Wire, tuple[str, int]]]:
    one = Wire(target)
    tasks: set[asyncio.Task[None]] = set()

    def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.get_running_loop().create_task(one.join(reader, writer)))

    server = await asyncio.start_server(joined, "127.0.0.1", 0)
    try:
        yield one, server.sockets[0].getsockname()
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for writer in one.writers:
            writer.close()
            await asyncio.wait([asyncio.ensure_future(writer.wait_closed())])


async def shout(address: tuple[str, int], data: bytes) -> bytes:
    """Send bytes as a stranger and read what comes until the other end closes."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), DEADLINE_S)
    except ConnectionError:
        return b""
    finally:
        writer.close()
        await asyncio.wait([asyncio.ensure_future(writer.wait_closed())])


def test_who_knows_the_secret_talks(run: Run) -> None:
    async def talk() -> None:
        async with house() as one, visitor(one.address, replace(DOOR, number=5)) as ear:
            await eventually(lambda: one.ear.streams and ear.streams, DEADLINE_S)
            assert (one.ear.streams[0].peer, ear.streams[0].peer) == (5, 3)
            assert not one.strangers
            long = bytes(300_000)
            for message in (b"one", b"", long):
                ear.streams[0].send(message)
                one.ear.streams[0].send(message + b"!")
            await eventually(lambda: len(one.ear.messages) == 3 and len(ear.messages) == 3, DEADLINE_S)
            assert one.ear.messages == [b"one", b"", long]
            assert ear.messages == [b"one!", b"!", long + b"!"]
            one.ear.streams[0].close("enough")
            await eventually(lambda: ear.lost and one.ear.lost, DEADLINE_S)
            assert one.ear.lost == ["enough"]
            assert not ear.streams[0].ready
            ear.streams[0].send(b"too late")

    run(talk())


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        (replace(DOOR, realm=replace(REALM, secret=bytes(32))), "it does not know the secret"),
        (replace(DOOR, purpose=b"share"), "it does not know the secret"),
        (replace(DOOR, realm=replace(REALM, epoch=6)), "it belongs to another launch of the fabric"),
    ],
    ids=["secret", "purpose", "epoch"],
)
async def test_who_is_of_another_fabric_is_turned_away(endpoint: Endpoint, why: str) -> None:
    async with house() as one, visitor(one.address, endpoint) as ear:
        await one.refused(why)
        await eventually(lambda: ear.lost, DEADLINE_S)
        assert not ear.streams


async def test_another_version_is_named() -> None:
    async with house() as one:
        hello = struct.pack("!8sHIQ16s", b"mrchosts", 9, 1, 7, bytes(16)) + bytes(MAC_BYTES)
        assert await shout(one.address, hello) == b""
        await one.refused("it speaks version 9, we speak 2")


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\nHost: there\r\n\r\n" * 3, bytes(500), b"\xff" * HELLO_BYTES])
async def test_whoever_is_no_host_is_turned_away(noise: bytes) -> None:
    async with house() as one:
        assert await shout(one.address, noise) == b""
        await one.refused("it is no host of a fabric")


async def test_a_cut_hello_is_no_hello() -> None:
    async with house() as one:
        reader, writer = await asyncio.open_connection(*one.address)
        writer.write(b"mrchosts")
        await eventually(lambda: one.strangers, DEADLINE_S)
        writer.close()
        await one.refused("the other end has closed")
        assert await reader.read() == b""


async def test_silent_strangers_are_sent_away_and_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_stream, "HELLO_WALL_S", 0.5)
    monkeypatch.setattr(keyed_stream, "STRANGERS_MAX", 2)
    async with house() as one:
        writers = [(await asyncio.open_connection(*one.address))[1] for _ in range(3)]
        await eventually(lambda: one.ear.lost == ["too many strangers"], DEADLINE_S)
        assert len(one.strangers) == 2
        async with visitor(one.address, DOOR) as ear:
            await eventually(lambda: one.ear.streams and ear.streams, DEADLINE_S)
            await eventually(lambda: len(one.ear.lost) == 3, DEADLINE_S)
            assert one.ear.lost == [*["too many strangers"] * 2, "it did not say who it is"]
            assert not one.strangers
            assert ear.streams[0].ready
        for writer in writers:
            writer.close()


async def test_a_recorded_conversation_is_worth_nothing() -> None:
    async with house() as one:
        async with wire(one.address) as (line, address), visitor(address, DOOR) as ear:
            await eventually(lambda: ear.streams, DEADLINE_S)
            ear.streams[0].send(b"secret order")
            await eventually(lambda: one.ear.messages, DEADLINE_S)
            recorded, answers = line.said[True], line.said[False]
        await eventually(lambda: one.ear.lost, DEADLINE_S)
        one.ear = Ear()
        await shout(one.address, recorded)
        await one.refused("a message was not its own")
        one.ear = Ear()
        # Nor does the hello alone count as somebody who speaks.
        _, writer = await asyncio.open_connection(*one.address)
        writer.write(recorded[:HELLO_BYTES])
        await eventually(lambda: one.strangers, DEADLINE_S)
        writer.close()
        await one.refused("the other end has closed")

    async def parrot(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(HELLO_BYTES)
        writer.write(answers)
        writer.close()

    server = await asyncio.start_server(parrot, "127.0.0.1", 0)
    async with visitor(server.sockets[0].getsockname(), DOOR) as ear:
        await eventually(lambda: ear.lost, DEADLINE_S)
        assert (ear.streams, ear.lost) == ([], ["it does not know the secret"])
    server.close()


async def test_nobody_is_taken_in_by_an_echo() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(HELLO_BYTES))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with visitor(server.sockets[0].getsockname(), DOOR) as ear:
        await eventually(lambda: ear.lost, DEADLINE_S)
        assert (ear.streams, ear.lost) == ([], ["it does not know the secret"])
    server.close()


@pytest.mark.parametrize("at", [0, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 4], ids=["length", "mac", "first", "last"])
async def test_a_changed_byte_ends_the_conversation(at: int) -> None:
    async with house() as one, wire(one.address) as (line, address), visitor(address, DOOR) as ear:
        await eventually(lambda: one.ear.streams and ear.streams, DEADLINE_S)
        line.change = lambda _caller, data: data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
        ear.streams[0].send(b"order")
        await eventually(lambda: one.ear.lost, DEADLINE_S)
        long = 0x4000_0000 + len(b"order")
        assert one.ear.lost == ["a message was not its own" if at else f"it announced a message of {long} bytes"]
        assert not one.ear.messages


async def test_messages_keep_their_place() -> None:
    async with house() as one, wire(one.address) as (line, address), visitor(address, DOOR) as ear:
        await eventually(lambda: one.ear.streams and ear.streams, DEADLINE_S)
        line.change = lambda _caller, data: data + data
        ear.streams[0].send(b"once")
        await eventually(lambda: one.ear.lost, DEADLINE_S)
        assert (one.ear.messages, one.ear.lost) == ([b"once"], ["a message was not its own"])


async def test_a_stranger_cannot_make_us_wait_for_a_long_message() -> None:
    async with house() as one:
        async with wire(one.address) as (line, address), visitor(address, DOOR) as ear:
            await eventually(lambda: ear.streams, DEADLINE_S)
            recorded = line.said[True][:HELLO_BYTES]
        await eventually(lambda: one.ear.lost, DEADLINE_S)
        one.ear = Ear()
        await shout(one.address, recorded + struct.pack("!I", MESSAGE_BYTES_MAX) + bytes(100))
        await one.refused(f"it announced a message of {MESSAGE_BYTES_MAX} bytes")


async def test_a_call_that_nobody_takes_says_why() -> None:
    async with house() as one:
        address = one.address
    ear = Ear()
    await call(address, ear.stream(DOOR))
    assert ear.lost == ["Connection refused"]
