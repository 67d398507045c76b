"""The control channel: requests and answers between the agent (or an operator's tool) and one daemon.

Owns the asking end: repetition until an answer or a deadline, pages, errors. The messages are in
`mrcfabric.control_message`, the daemon's end in `mrcfabric.control_server`; both are offered here under one name.
"""

import asyncio
import os
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


class NoAnswerError(Exception):
    """A daemon did not answer before the deadline; the text says whom, what, and what was heard last."""


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
        self._waiting: dict[int, asyncio.Queue[dict[str, Any]]] = {}
        self._last_error = ""
        self.drops: dict[str, int] = {}

    async def open(self) -> None:
        """Connect the socket; nothing is sent."""
        self._stream = await asyncio_dgram.connect(tuple(self._address))
        self._receiving = asyncio.create_task(self._receive(), name=f"control {self._address}")

    async def close(self) -> None:
        """Close the socket; calls under way end by their deadline."""
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait([self._receiving])
            self._receiving = None
            self._stream.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def call(self, op: str, args: Mapping[str, Any] | None = None, timeout_s: float = 5.0) -> Any:
        """The result of an op. Raises RefusedError with the daemon's reason, NoAnswerError after `timeout_s`,
        ConfigError for arguments that no message can carry.

        The request is repeated until something is heard; the daemon carries it out once per incarnation.
        """
        self._sequence += 1
        sequence = self._sequence
        inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._waiting[sequence] = inbox
        self._last_error = ""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._fetch(sequence, op, dict(args or {}), inbox)
        except TimeoutError:
            host, port = self._address
            why = f": {self._last_error}" if self._last_error else ""
            raise NoAnswerError(f"{op}: no answer from {host}:{port} within {timeout_s:g} s{why}") from None
        finally:
            del self._waiting[sequence]

    async def _fetch(self, sequence: int, op: str, args: dict[str, Any], inbox: asyncio.Queue[dict[str, Any]]) -> Any:
        parts: list[bytes] = []
        pages = 1
        while len(parts) < pages:
            answer = await self._ask(sequence, op, args, len(parts), inbox)
            if answer["status"] == "refused":
                raise RefusedError(msgpack.unpackb(answer["body"]))
            pages = answer["pages"]
            parts.append(answer["body"])
            # Only the first page needs the request's content.
            args = {}
        return msgpack.unpackb(b"".join(parts), strict_map_key=False)

    async def _ask(
        self, sequence: int, op: str, args: dict[str, Any], page: int, inbox: asyncio.Queue[dict[str, Any]]
    ) -> dict[str, Any]:
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
        except (OverflowError, ValueError) as error:  # what JSON can say and MessagePack cannot
            raise ConfigError(op, f"the request cannot be carried: {error}", "numbers have 64 bits at most") from None
        if len(datagram) > PAGE_BYTES:
            raise RefusedError(f"{op}: the request has {len(datagram)} bytes, at most {PAGE_BYTES} are carried")
        wait_s = _RETRY_FIRST_S
        while True:
            await self._send(datagram)
            try:
                async with asyncio.timeout(wait_s):
                    while True:
                        answer = await inbox.get()
                        if answer["status"] == "pending":
                            self._last_error = "it is still being carried out"
                        elif answer["status"] == "refused" or answer["page"] == page:
                            return answer
            except TimeoutError:
                wait_s = min(wait_s * 2, _RETRY_MAX_S)

    async def _send(self, datagram: bytes) -> None:
        try:
            await self._stream.send(datagram)
        except OSError as error:
            # An earlier datagram's fate; the daemon may be starting, so the deadline decides.
            self._last_error = error.strerror or str(error)

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
        elif (inbox := self._waiting.get(ident[1])) is not None:
            inbox.put_nowait(message)
