"""The daemon's end of the host API: a Unix socket on which applications use their NIC.

Owns the sockets and the list of connections; `nicd.verbs_requests` handles the messages. The server answers a broken
request with one line of text, ends the conversation after a broken message, and hangs up on an application that does
not read its completions.

The daemon and this module meet in two calls: the daemon gives `submit(command)` at construction, and passes every batch
of the core's events to `deliver`.
"""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterable

from nicd.core.commands import Command
from nicd.verbs_client import DETAIL_CHARS_MAX, Client, VerbsLimits, receive
from nicd.verbs_codec import MESSAGE_BYTES_MAX, VerbsError, pack, unpack
from nicd.verbs_requests import VerbsRequests

PACKETS_PER_TURN_MAX = 64
"""How many packets to take from one application before others, and the data path, have a turn."""
LISTEN_BACKLOG = 16
FULL = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""The machine has no room for one more connection."""
FULL_WALL_S = 1.0
"""After that long the server tries again."""


class VerbsServer:
    """Serves the host API of one NIC at `path`."""

    def __init__(self, path: str, submit: Callable[[Command], object], node: str, nic_index: int,
                 limits: VerbsLimits | None = None) -> None:  # fmt: skip
        self.path = path
        self._node = node
        self._limits = limits or VerbsLimits()
        self._requests = VerbsRequests(submit, self._flush, node, nic_index, self._limits)
        self._clients: set[Client] = set()
        self._listener: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._accepted = 0
        self._hung_up = 0

    def counters(self) -> dict[str, int]:
        """Applications connected now and ever, hung up on, and their requests."""
        return {
            "clients": len(self._clients),
            "accepted": self._accepted,
            "hung_up": self._hung_up,
            **self._requests.counts,
        }

    def deliver(self, events: Iterable[object]) -> None:
        """Take a batch of the core's events, in order, and pass them on to their applications."""
        self._requests.deliver(events)

    def start(self) -> None:
        """Listen. Needs a running loop. Replaces a stale socket file of a dead daemon."""
        self._loop = asyncio.get_running_loop()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        listener.bind(self.path)
        os.chmod(self.path, 0o600)
        listener.listen(LISTEN_BACKLOG)
        self._listener = listener
        self._listen()

    def _listen(self) -> None:
        if self._listener is not None and self._loop is not None:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Stop listening, hang up on all applications, and remove the socket file."""
        if self._listener is not None and self._loop is not None:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
        for client in list(self._clients):
            self._hang_up(client, "the NIC daemon stops")

    def drop(self) -> None:
        """Close all sockets without a word and leave the socket file, as when the process is killed."""
        if self._listener is None or self._loop is None:
            return
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()
        self._listener = None
        for client in self._clients:
            client.closing = True
            self._loop.remove_reader(client.sock.fileno())
            self._loop.remove_writer(client.sock.fileno())
            client.sock.close()
        self._clients.clear()

    def _accept(self) -> None:
        assert self._listener is not None
        assert self._loop is not None
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError as error:
                if error.errno in FULL:
                    # The listener stays readable: without a pause the daemon would do nothing else.
                    self._loop.remove_reader(self._listener.fileno())
                    self._loop.call_later(FULL_WALL_S, self._listen)
                return
            sock.setblocking(False)
            client = Client(sock, self._limits)
            if len(self._clients) >= self._limits.clients_max:
                client.unsent.append(pack((0, "bye", f"{self._node} already serves {len(self._clients)} applications")))
                client.flush()
                sock.close()
                continue
            self._clients.add(client)
            self._accepted += 1
            self._loop.add_reader(sock.fileno(), self._readable, client)

    def _readable(self, client: Client) -> None:
        for _ in range(PACKETS_PER_TURN_MAX):
            if client.closing:
                return
            received = receive(client.sock, MESSAGE_BYTES_MAX)
            if received is None:
                break
            data, fds, cut = received
            try:
                if not data:
                    self._lose(client)
                    return
                if cut:
                    raise VerbsError(f"a message is longer than {MESSAGE_BYTES_MAX} bytes")
                number, op, args = unpack(data)
                self._requests.message(client, number, op, args, fds)
            except VerbsError as error:
                self._hang_up(client, str(error))
                return
            finally:
                for fd in fds:
                    os.close(fd)
        self._flush(client)

    def _flush(self, client: Client) -> None:
        assert self._loop is not None
        if client.closing:
            return
        lost = client.flush()
        if lost is not None:
            self._hang_up(client, lost)
        elif client.unsent:
            self._loop.add_writer(client.sock.fileno(), self._flush, client)
        else:
            self._loop.remove_writer(client.sock.fileno())

    def _hang_up(self, client: Client, reason: str) -> None:
        if not client.closing:
            client.unsent.append(pack((0, "bye", reason[:DETAIL_CHARS_MAX])))
            with contextlib.suppress(OSError):
                client.sock.send(client.unsent[-1], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            self._hung_up += 1
            self._lose(client)

    def _lose(self, client: Client) -> None:
        assert self._loop is not None
        self._loop.remove_reader(client.sock.fileno())
        self._loop.remove_writer(client.sock.fileno())
        client.sock.close()
        self._clients.discard(client)
        self._requests.abandon(client)
