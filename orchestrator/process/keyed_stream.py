"""Messages between the hosts of one fabric over TCP, keyed and numbered; anybody else is refused.

Both ends know the secret of the fabric's launch. Each begins with a hello: its number, its launch and fresh random
bytes, under a MAC of the secret. The MAC of the answering hello covers the asking one too. The keys of the two
directions follow from both hellos, and the end that called proves with an empty message that it has them. So a recorded
connection is of no use in another one, not even to displace a peer that is connected. A message is its length, a MAC
over its number in the connection and its bytes, and the bytes. Nothing is encrypted: secrets do not travel here.

The relays (`orchestrator.hosts.clock.relay`) and the shares (`orchestrator.hosts.share`) decide what the messages say.
"""

import asyncio
import hashlib
import hmac
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from mrcfabric.control_message import MAC_BYTES, Address, Realm

MESSAGE_BYTES_MAX = 64 << 20
"""A longer message ends the connection: no end sends one."""
HELLO_WALL_S = 5.0
"""How long a stranger may take to prove who it is."""
STRANGERS_MAX = 256
"""Connections that have not proved who they are, at most. One more displaces the oldest: a real peer is quick."""
SILENT_WALL_S = 4
"""A connection is cut when the network takes nothing for so long. The caller calls again, sooner than TCP gives up."""
CALL_WALL_S = 2.0
"""How long the other end may take to accept a call."""

_VERSION = 2
_NONCE_BYTES = 16
_HELLO = struct.Struct("!8sHIQ16s")
_MAGIC = b"mrchosts"
_HELLO_BYTES = _HELLO.size + MAC_BYTES
_LENGTH = struct.Struct("!I")
_PLACE = struct.Struct("!Q")
_HEAD_BYTES = _LENGTH.size + MAC_BYTES
_PERSON = b"mrcfabric-host"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Our side of a connection: who we are, and which launch of which fabric it belongs to."""

    realm: Realm
    number: int
    """Our number among the hosts."""
    purpose: bytes
    """Keeps connections of relays and of shares apart, such as `relay`."""


HUNG_UP = "the other end has closed"
"""Why a connection is lost that the other end, or its kernel, has closed. One that fell silent has another reason."""


class KeyedStream(asyncio.Protocol):
    """One end of a connection. Calls `on_ready(stream)`, `on_message(stream, bytes)`, `on_lost(stream, why)`."""

    def __init__(
        self,
        endpoint: Endpoint,
        on_ready: "Callable[[KeyedStream], None]",
        on_message: "Callable[[KeyedStream, bytes], None]",
        on_lost: "Callable[[KeyedStream, str], None]",
        strangers: "Strangers | None" = None,
    ) -> None:
        """`strangers`: where an end that accepts keeps connections that have not proved who they are."""
        self._endpoint = endpoint
        self._on_ready, self._on_message, self._on_lost = on_ready, on_message, on_lost
        self._strangers = strangers
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._hello = b""
        self._send_key = self._receive_key = b""
        self._sent = self._received = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._why = ""
        self._keyed = False
        self._number = -1
        self.over = asyncio.Event()
        """Set when the connection has ended."""
        self.peer = -1
        """The number of the other end, once it has proved that it knows the secret; -1 before."""

    @property
    def ready(self) -> bool:
        """Whether the other end has proved who it is, so that messages can be sent."""
        return self.peer >= 0 and self._open

    @property
    def _open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def caller(self) -> str:
        """The address of the other end, for messages."""
        name = None if self._transport is None else self._transport.get_extra_info("peername")
        return f"{name[0]} port {name[1]}" if isinstance(name, tuple) else "nobody"

    @property
    def unsent_bytes(self) -> int:
        """Bytes that wait for the network."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def send(self, message: bytes) -> None:
        """Send one message. Drops it when the other end is gone, which `on_lost` reports."""
        if self.ready:
            self._write(message)

    def _write(self, message: bytes) -> None:
        assert self._transport is not None
        self._transport.writelines(
            [_LENGTH.pack(len(message)), self._mac(self._send_key, self._sent, message), message]
        )
        self._sent += 1

    def close(self, why: str = "closed") -> None:
        """End the connection."""
        self._why = self._why or why
        if self._transport is not None:
            self._transport.abort()

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The end that called says hello first."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport is one without inheriting from it
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            _set_options(sock)
        if self._strangers is not None:
            if len(self._strangers) >= STRANGERS_MAX:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                oldest.close("too many strangers")
            self._strangers[self] = None
        self._deadline = asyncio.get_running_loop().call_later(HELLO_WALL_S, self.close, "it did not say who it is")
        if self._strangers is None:
            self._say_hello(b"")

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._open or (not self._keyed and not self._take_hello()):
            return
        self._take_messages()

    def connection_lost(self, error: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._strangers is not None:
            self._strangers.pop(self, None)
        self.over.set()
        closed = error is None or isinstance(error, ConnectionResetError)
        self._on_lost(self, self._why or (HUNG_UP if closed else str(error)))

    # Hellos.

    def _say_hello(self, asked: bytes) -> None:
        """`asked`: the hello that this one answers; empty for the first."""
        endpoint = self._endpoint
        body = _HELLO.pack(_MAGIC, _VERSION, endpoint.number, endpoint.realm.epoch, os.urandom(_NONCE_BYTES))
        self._hello = body + self._proof(asked, body)
        assert self._transport is not None
        self._transport.write(self._hello)

    def _proof(self, asked: bytes, body: bytes) -> bytes:
        side = b"answer" if asked else b"ask"
        return _hash(self._endpoint.realm.secret, b"|".join((self._endpoint.purpose, side, asked + body)))

    def _take_hello(self) -> bool:
        if len(self._buffer) < _HELLO_BYTES:
            return False
        hello = bytes(self._buffer[:_HELLO_BYTES])
        del self._buffer[:_HELLO_BYTES]
        body, mac = hello[: _HELLO.size], hello[_HELLO.size :]
        magic, version, number, epoch, _ = _HELLO.unpack(body)
        if magic != _MAGIC:
            self.close("it is no host of a fabric")
        elif version != _VERSION:
            self.close(f"it speaks version {version}, we speak {_VERSION}")
        elif not hmac.compare_digest(mac, self._proof(self._hello, body)):
            self.close("it does not know the secret")
        elif epoch != self._endpoint.realm.epoch:
            self.close("it belongs to another launch of the fabric")
        else:
            self._agree(hello, number)
            return True
        return False

    def _agree(self, hello: bytes, number: int) -> None:
        accepting = self._strangers is not None
        if accepting:
            self._say_hello(hello)
        asked, answered = (hello, self._hello) if accepting else (self._hello, hello)
        keys = [_hash(self._endpoint.realm.secret, side + asked + answered) for side in (b"asking", b"answering")]
        self._send_key, self._receive_key = reversed(keys) if accepting else keys
        self._keyed = True
        self._number = number
        # The end that called proves with an empty message that it has the keys. The other end waits for that message.
        if not accepting:
            self._write(b"")
            self._is_known()

    def _is_known(self) -> None:
        if self._strangers is not None:
            self._strangers.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
        self.peer = self._number
        self._on_ready(self)

    # Messages.

    def _take_messages(self) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= _HEAD_BYTES:
            (size,) = _LENGTH.unpack_from(buffer, at)
            if size > (MESSAGE_BYTES_MAX if self.peer >= 0 else 0):
                self.close(f"it announced a message of {size} bytes")
                return
            end = at + _HEAD_BYTES + size
            if len(buffer) < end:
                break
            message = bytes(buffer[at + _HEAD_BYTES : end])
            mac = bytes(buffer[at + _LENGTH.size : at + _HEAD_BYTES])
            if not hmac.compare_digest(mac, self._mac(self._receive_key, self._received, message)):
                self.close("a message was not its own")
                return
            self._received += 1
            at = end
            if self.peer < 0:
                self._is_known()
            else:
                self._on_message(self, message)
            if not self._open:
                return
        del buffer[:at]

    @staticmethod
    def _mac(key: bytes, place: int, message: bytes) -> bytes:
        return hashlib.blake2b(_PLACE.pack(place) + message, key=key, digest_size=MAC_BYTES).digest()


def _hash(key: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(body, key=key, digest_size=MAC_BYTES, person=_PERSON).digest()


def _set_options(sock: socket.socket) -> None:
    """Send without delay, and notice a cut network whether data are under way or not."""
    for option, value in (
        (socket.TCP_NODELAY, 1),
        (socket.TCP_USER_TIMEOUT, SILENT_WALL_S * 1000),
        (socket.TCP_KEEPIDLE, 1),
        (socket.TCP_KEEPINTVL, 1),
        (socket.TCP_KEEPCNT, SILENT_WALL_S),
    ):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


Strangers: TypeAlias = dict[KeyedStream, None]
"""Connections of one endpoint that have not proved who they are, oldest first."""


async def call(address: Address, stream: KeyedStream) -> None:
    """Connect `stream`, and return when its connection has ended or could not begin. `on_lost` gets the reason.

    Ends the connection when cancelled.
    """
    host, port = address
    try:
        async with asyncio.timeout(CALL_WALL_S):
            await asyncio.get_running_loop().create_connection(lambda: stream, host, port)
    except OSError as error:
        late = isinstance(error, TimeoutError)
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        stream.close(f"no answer within {CALL_WALL_S:g} s" if late else why)
        stream.connection_lost(error)
    try:
        await stream.over.wait()
    finally:
        stream.close()
