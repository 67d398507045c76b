"""The channel between the orchestrator and one workload process: small messages over a socketpair.

Owns the two ends, blocking for the worker and asyncio for the orchestrator; what the messages say is `worker`'s and
`crew`'s. One SOCK_SEQPACKET packet is one msgpack map with the key "kind". A closed end means that the other side is
gone: the worker then ends, the orchestrator counts the worker as lost.
"""

import asyncio
import socket
from typing import Any, TypeAlias

import msgpack

Message: TypeAlias = dict[str, Any]

MESSAGE_BYTES_MAX = 160 * 1024
"""Longest message; the default socket buffers hold one."""


class ChannelClosedError(Exception):
    """The other end is gone."""


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """(orchestrator's end, worker's end)."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


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
        """Tell the orchestrator. Raises ChannelClosedError when it is gone."""
        try:
            self._sock.send(_pack({"kind": kind, **fields}))
        except OSError as error:
            raise ChannelClosedError(str(error)) from None

    def receive(self, wait: bool = True) -> Message | None:
        """The next message; without `wait` None when there is none. Raises ChannelClosedError."""
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


class CrewChannel:
    """The orchestrator's end, on the running loop. One reader at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        sock.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._inbox: asyncio.Queue[Message | None] = asyncio.Queue()
        self._loop.add_reader(sock.fileno(), self._readable)

    def send(self, kind: str, **fields: Any) -> None:
        """Tell the worker. A worker that is gone is noticed when reading."""
        try:
            self._sock.send(_pack({"kind": kind, **fields}))
        except (BrokenPipeError, ConnectionError):
            self._inbox.put_nowait(None)

    async def receive(self) -> Message:
        """The worker's next message. Raises ChannelClosedError when it is gone."""
        message = await self._inbox.get()
        if message is None:
            self._inbox.put_nowait(None)
            raise ChannelClosedError("the worker is gone")
        return message

    def _readable(self) -> None:
        while True:
            try:
                data = self._sock.recv(MESSAGE_BYTES_MAX)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._loop.remove_reader(self._sock.fileno())
                self._inbox.put_nowait(None)
                return
            self._inbox.put_nowait(_unpack(data))

    def close(self) -> None:
        """Let go: the worker ends."""
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()
