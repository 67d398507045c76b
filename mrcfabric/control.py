"""The asking end of the control channel: the agent (or an operator's tool) sends requests to one daemon.

Owns repetition until an answer or a deadline, pages and errors. `mrcfabric.control_message` has the messages and
`mrcfabric.control_server` the daemon's end; this module re-exports both.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any, Self

import asyncio_dgram
import msgpack

from mrcfabric.control_message import (
    PAGE_BYTES,
    PROTOCOL_VERSION,
    Address,
    Realm,
    ident_of,
    new_secret,
    read_secret,
    seal,
    secret_of,
    unseal,
    write_secret,
)
from mrcfabric.control_server import ControlLimits, ControlServer, Op
from mrcfabric.errors import ConfigError, RefusedError

__all__ = [
    "Address",
    "ControlClient",
    "ControlLimits",
    "ControlServer",
    "NoAnswerError",
    "Op",
    "Realm",
    "new_secret",
    "read_secret",
    "secret_of",
    "write_secret",
]

_RETRY_FIRST_S = 0.1
_RETRY_MAX_S = 1.0
_LATE_S = 0.5
"""How late a timer may fire on a busy machine."""
_PAGES_AT_ONCE = 4
"""How many pages of an answer are asked for at once: they have to fit into the buffer of the socket."""


class NoAnswerError(Exception):
    """A daemon did not answer before the deadline; the text says which daemon, which op, and what was heard last."""


class _Deadline:
    """The end of a call, in time during which this process ran: after being stopped it still reads what has arrived."""

    def __init__(self, timeout_s: float) -> None:
        self._left_s = timeout_s
        self._began_s: float | None = None
        self._wait_s = 0.0

    def copy(self) -> "_Deadline":
        """Another one with as much time left."""
        return _Deadline(self._left_s)

    def next_wait_s(self, wait_s: float) -> float:
        """How long to wait now, at most `wait_s`. Raises TimeoutError when the time is over."""
        now_s = time.monotonic()
        if self._began_s is not None:
            passed_s = now_s - self._began_s
            # If the wait ended far too late, this process was stopped: answers that arrived meanwhile have yet to be
            # read, so only half of the wait is charged.
            self._left_s -= passed_s if passed_s < 2 * self._wait_s + _LATE_S else self._wait_s / 2
        if self._left_s <= 0:
            raise TimeoutError
        self._began_s, self._wait_s = now_s, min(wait_s, self._left_s)
        return self._wait_s


class ControlClient:
    """Asks one daemon; any number of calls may be under way. `async with ControlClient(...) as client`."""

    def __init__(self, address: Address, realm: Realm, *, incarnation: int | None = None) -> None:
        self._address = address
        self._realm = realm
        self._incarnation = incarnation
        self._ident = int.from_bytes(os.urandom(7), "big")
        self._sequence = 0
        self._stream: Any = None
        self._receiving: asyncio.Task[None] | None = None
        self._waiting: dict[int, dict[int, asyncio.Queue[dict[str, Any]]]] = {}
        """By sequence number: who waits for which page."""
        self._last_error = ""
        self.drops: dict[str, int] = {}

    async def open(self) -> None:
        """Connect the socket; nothing is sent."""
        self._stream = await asyncio_dgram.connect(tuple(self._address))
        self._receiving = asyncio.create_task(self._receive(), name=f"control {self._address}")

    def close(self) -> None:
        """Close the socket; calls under way fail at their deadline. It waits for nothing, so nothing cuts it short."""
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None
            self._stream.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    async def call(self, op: str, args: Mapping[str, Any] | None = None, timeout_s: float = 5.0) -> Any:
        """The result of an op; RefusedError carries the daemon's reason, NoAnswerError comes after `timeout_s`.

        Raises ConfigError for arguments that no message can carry. The client repeats the request until it hears
        something; the daemon carries it out once per incarnation.
        """
        self._sequence += 1
        sequence = self._sequence
        self._waiting[sequence] = {}
        self._last_error = ""
        try:
            return await self._fetch(sequence, op, dict(args or {}), timeout_s)
        except TimeoutError:
            host, port = self._address
            raise NoAnswerError(f"{op}: no answer from {host}:{port} within {timeout_s:g} s{self.heard_last}") from None
        finally:
            del self._waiting[sequence]

    @property
    def heard_last(self) -> str:
        """What was last heard about an unanswered request, as the end of a sentence; "" for nothing."""
        return f": {self._last_error}" if self._last_error else ""

    async def _fetch(self, sequence: int, op: str, args: dict[str, Any], timeout_s: float) -> Any:
        first, deadline = await self._ask(sequence, op, args, 0, _Deadline(timeout_s))
        parts = [first["body"]]
        # Only the request for the first page needs the content.
        for start in range(1, first["pages"], _PAGES_AT_ONCE):
            numbers = range(start, min(start + _PAGES_AT_ONCE, first["pages"]))
            asked = [asyncio.ensure_future(self._ask(sequence, op, {}, page, deadline.copy())) for page in numbers]
            try:
                found = await asyncio.gather(*asked)
            finally:
                for one in asked:
                    one.cancel()
            parts += [answer["body"] for answer, _ in found]
            deadline = found[-1][1]
        return msgpack.unpackb(b"".join(parts), strict_map_key=False)

    async def _ask(
        self,
        sequence: int,
        op: str,
        args: dict[str, Any],
        page: int,
        deadline: "_Deadline",
    ) -> tuple[dict[str, Any], "_Deadline"]:
        """One page of the answer, and what is left of the time. Raises RefusedError, TimeoutError."""
        inbox = self._waiting[sequence][page] = asyncio.Queue()
        request = {
            "v": PROTOCOL_VERSION,
            "fabric": self._realm.fabric,
            "epoch": self._realm.epoch,
            "incarnation": self._incarnation,
            "id": (self._ident, sequence),
            "op": op,
            "args": args,
            "page": page,
        }
        try:
            datagram = seal(request, self._realm.secret)
        except (OverflowError, ValueError) as error:  # JSON can carry these numbers, MessagePack cannot
            raise ConfigError(op, f"the request cannot be carried: {error}", "numbers have 64 bits at most") from None
        if len(datagram) > PAGE_BYTES:
            raise RefusedError(f"{op}: the request has {len(datagram)} bytes, at most {PAGE_BYTES} are carried")
        wait_s = _RETRY_FIRST_S
        while True:
            await self._send(datagram)
            this_wait_s = deadline.next_wait_s(wait_s)
            try:
                async with asyncio.timeout(this_wait_s):
                    while True:
                        answer = await inbox.get()
                        if answer["status"] == "pending":
                            self._last_error = "it is still being carried out"
                        elif answer["status"] == "refused":
                            raise RefusedError(msgpack.unpackb(answer["body"]))
                        else:
                            return answer, deadline
            except TimeoutError:
                wait_s = min(wait_s * 2, _RETRY_MAX_S)

    async def _send(self, datagram: bytes) -> None:
        try:
            await self._stream.send(datagram)
        except OSError as error:
            # The error belongs to an earlier datagram. The daemon may still be starting, so only the deadline ends the
            # call.
            self._last_error = error.strerror or str(error)
        except asyncio_dgram.TransportClosed:
            self._last_error = "the socket has been closed"

    async def _receive(self) -> None:
        while True:
            try:
                datagram, _ = await self._stream.recv()
            except OSError as error:
                self._last_error = error.strerror or str(error)
                continue
            except asyncio_dgram.TransportClosed:
                return
            self._take(bytes(datagram))

    def _take(self, datagram: bytes) -> None:
        message = unseal(datagram, self._realm.secret)
        if isinstance(message, str):
            self.drops[message] = self.drops.get(message, 0) + 1
            return
        ident = ident_of(message.get("id"))
        answered = {"status", "page", "pages", "body"} <= message.keys()
        if ident is None or ident[0] != self._ident or not answered:
            self.drops["not_asked"] = self.drops.get("not_asked", 0) + 1
        else:
            waiting = self._waiting.get(ident[1], {})
            # A refusal, and the word that it takes longer, are about all pages.
            told = waiting.values() if message["status"] != "ok" else [waiting.get(message["page"])]
            for inbox in told:
                if inbox is not None:
                    inbox.put_nowait(message)
