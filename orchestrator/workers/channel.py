"""The channel between the orchestrator and one worker process: small messages over a socketpair.

Owns the two ends: the worker's blocks, the orchestrator's uses asyncio. `worker` and `group` say what the messages
mean. A message is one SOCK_SEQPACKET packet with a msgpack map, which has the key "kind". When an end is closed, the
other side is gone: the worker then ends, and the orchestrator counts the worker as lost.
"""

import asyncio
import contextlib
import socket
from typing import Any, TypeAlias

import msgpack

Message: TypeAlias = dict[str, Any]

MESSAGE_BYTES_MAX = 160 * 1024
"""Longest message. The default socket buffers hold one."""


class ChannelClosedError(Exception):
    """The other end is gone."""


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """(orchestrator's end, worker's end)."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


async def next_packet(sock: socket.socket) -> bytes:
    """The next packet from the other end of a channel, unread; b"" when that has gone. `sock` must not block."""
    while True:
        try:
            return await asyncio.get_running_loop().sock_recv(sock, MESSAGE_BYTES_MAX)
        except ConnectionResetError:
            continue  # raised once if the other end left packets unread; its own packets are still to be read


def _pack(message: Message) -> bytes:
    data: bytes = msgpack.packb(message)
    assert len(data) <= MESSAGE_BYTES_MAX, f"a {message['kind']} message of {len(data)} bytes"
    return data


def _unpack(data: bytes) -> Message:
    message: Message = msgpack.unpackb(data, strict_map_key=False)
    return message


class WorkerChannel:
    """The worker's end, blocking."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        sock.setblocking(True)

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, kind: str, **fields: Any) -> None:
        """Send a message to the orchestrator. Raises ChannelClosedError when it is gone."""
        try:
            self._sock.send(_pack({"kind": kind, **fields}))
        except OSError as error:
            raise ChannelClosedError(str(error)) from None

    def receive(self, wait: bool = True) -> Message | None:
        """The next message; without `wait`, None when there is none. Raises ChannelClosedError."""
        try:
            data = self._sock.recv(MESSAGE_BYTES_MAX, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            raise ChannelClosedError(str(error)) from None
        if not data:
            raise ChannelClosedError("the orchestrator closed the channel")
        return _unpack(data)

    def close(self) -> None:
        self._sock.close()


class GroupChannel:
    """The orchestrator's end, on the running loop. It takes one reader at a time.

    A message that nobody reads waits in the socket. When that is full, the worker waits."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        sock.setblocking(False)

    def send(self, kind: str, **fields: Any) -> None:
        """Send the worker a message at once; there must be room. A worker that is gone is noticed when reading."""
        with contextlib.suppress(ConnectionError):
            self._sock.send(_pack({"kind": kind, **fields}))

    async def hand(self, kind: str, **fields: Any) -> None:
        """Send the worker a message when there is room."""
        with contextlib.suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(self._sock, _pack({"kind": kind, **fields}))

    async def receive(self) -> Message:
        """The worker's next message. Raises ChannelClosedError when it is gone."""
        packet = await next_packet(self._sock)
        if not packet:
            raise ChannelClosedError("the worker is gone")
        return _unpack(packet)

    def close(self) -> None:
        """Close the channel, while nobody reads it. The worker then ends."""
        self._sock.close()
