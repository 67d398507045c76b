"""The daemon's end of the control channel: authenticates requests and runs each of them once.

A daemon runs each request id once per incarnation and keeps the answer, so a client may repeat a request until it hears
something. The server cuts answers longer than `PAGE_BYTES` into pages, which the client fetches one by one. It drops
and counts a datagram that does not bear the fabric's secret or belongs to another fabric; such a datagram never raises.

`mrcfabric.daemon`, nicd and switchd register the ops. Uses asyncio-dgram.
"""

import asyncio
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import asyncio_dgram
import msgpack

from mrcfabric.control_message import (
    PAGE_BYTES,
    PAGES_MAX,
    PROTOCOL_VERSION,
    Address,
    Realm,
    RequestId,
    request_of,
    seal,
    unseal,
)
from mrcfabric.errors import ConfigError, RefusedError

Op: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]
"""One operation: takes the args, returns data that msgpack can carry. RefusedError and ConfigError go back as text."""
TOO_OLD = "this request is too old, its answer is no longer kept"
FORGOTTEN = "forgotten"
_SENDS_MAX = 3
"""Tries to send one datagram: instead of sending, asyncio-dgram may raise the error of an earlier datagram."""


@dataclass(frozen=True, slots=True)
class ControlLimits:
    """Bounds of a server."""

    answers_max: int = 1024
    """Answers kept for repeated requests. The oldest goes first; its id is refused from then on."""
    answer_bytes_max: int = 16 << 20
    """Bytes of kept answers; the newest is kept whatever its size."""
    answer_wall_s: float = 60.0
    """How long an answer is kept after it was last asked for. Its id is remembered, and a repetition refused."""
    pending_max: int = 256
    """Requests carried out at once; the server refuses one more as busy."""
    clients_max: int = 4096
    """How many clients' oldest valid sequence numbers the server remembers; it then refuses further clients."""


class _Answer:
    """The state of one request id: still running, or the pages of its answer."""

    __slots__ = ("asked_s", "asker", "pages", "status", "uncut")

    def __init__(self, asker: Any = None) -> None:
        self.asker = asker
        """The address that asked: the same request from another address is a replayed recording."""
        self.uncut = False
        self.asked_s = time.monotonic()
        """When it was last asked for."""
        self.status = "pending"
        self.pages: list[bytes] = [b""]

    @property
    def size(self) -> int:
        return sum(map(len, self.pages))


class ControlServer:
    """Serves named ops on one address. `await open()`, then run `serve()` as a task; cancel it to stop.

    An op that raises anything other than RefusedError or ConfigError has a bug: `serve` raises the exception.
    """

    def __init__(
        self,
        bind: Address,
        realm: Realm,
        ops: Mapping[str, Op],
        *,
        incarnation: int = 0,
        limits: ControlLimits | None = None,
        cut_off: Callable[[], bool] = lambda: False,
        uncut: Collection[str] = (),
    ) -> None:
        """`cut_off` says whether the channel is cut now.

        The server then drops and counts requests, and answers nothing.

        `uncut` names the ops that work all the same.
        """
        self._cut_off = cut_off
        self._uncut = frozenset(uncut)
        self._bind = bind
        self._realm = realm
        self._ops = dict(ops)
        self._incarnation = incarnation
        self._limits = limits or ControlLimits()
        self._stream: Any = None
        self._answers: OrderedDict[RequestId, _Answer] = OrderedDict()
        self._answer_bytes = 0
        self._aging: deque[_Answer] = deque()
        """Answers in the order in which they were made."""
        self._pending = 0
        self._floors: dict[int, int] = {}
        self.requests = 0
        self.duplicates = 0
        self.refused = 0
        self.drops: dict[str, int] = {}

    async def open(self) -> None:
        """Bind. Raises ConfigError when the address cannot be had."""
        host, port = self._bind
        # We bind the socket ourselves: uvloop leaks the transport of a failed bind.
        bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            bound.bind((host, port))
        except OSError as error:
            bound.close()
            raise ConfigError(f"control {host}:{port}", error.strerror or str(error)) from None
        bound.setblocking(False)
        self._stream = await asyncio_dgram.from_socket(bound)

    @property
    def address(self) -> Address:
        """The bound address (with the real port when 0 was asked for)."""
        host, port = self._stream.sockname[:2]
        return str(host), int(port)

    @property
    def kept_bytes(self) -> int:
        """What the kept answers take."""
        return self._answer_bytes

    def counters(self) -> dict[str, Any]:
        """Counters of the control channel."""
        return {
            "requests": self.requests,
            "duplicates": self.duplicates,
            "refused": self.refused,
            "drops": dict(self.drops),
        }

    async def serve(self) -> None:
        """Answer until cancelled; cancelling also cancels ops that still run."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    try:
                        datagram, peer = await self._stream.recv()
                    except OSError:
                        # asyncio-dgram raises the error of an earlier send here.
                        self._drop("socket_error")
                        continue
                    await self._take(bytes(datagram), peer, group)
        finally:
            self.close()

    def close(self) -> None:
        """Close the socket."""
        self._stream.close()

    def _drop(self, reason: str) -> None:
        self.drops[reason] = self.drops.get(reason, 0) + 1

    async def _take(self, datagram: bytes, peer: Any, group: asyncio.TaskGroup) -> None:
        message = unseal(datagram, self._realm.secret)
        if isinstance(message, str):
            self._drop(message)
            return
        if message.get("fabric") != self._realm.fabric or message.get("epoch") != self._realm.epoch:
            self._drop("other_fabric")
            return
        request = request_of(message)
        if request is None:
            self._drop("malformed")
            return
        ident, op, args, page = request
        if op not in self._uncut and self._cut_off():
            self._drop("cut_off")
            return
        # A repetition gets the kept answer, but only for the address that asked first: any other replays a recording.
        known = self._answers.get(ident)
        if known is not None and known.asker != peer:
            self._drop("other_asker")
            return
        if known is not None and known.status == FORGOTTEN:
            await self._send(ident, _settled("refused", TOO_OLD), 0, peer)
            return
        if known is not None:
            self.duplicates += page == 0
            known.asked_s = time.monotonic()
            await self._send(ident, known, page, peer)
            return
        self.requests += 1
        if reason := self._reason_to_refuse(message, ident, op, page):
            self.refused += 1
            await self._send(ident, _settled("refused", reason), 0, peer)
            return
        self._answers[ident] = answer = _Answer(peer)
        answer.uncut = op in self._uncut
        self._pending += 1
        group.create_task(self._run(ident, answer, self._ops[op], args, peer))

    def _reason_to_refuse(self, message: dict[str, Any], ident: RequestId, op: str, page: int) -> str | None:
        if message.get("v") != PROTOCOL_VERSION:
            return f"control protocol version {PROTOCOL_VERSION} is spoken here, not {message.get('v')}"
        incarnation = message.get("incarnation")
        if incarnation is not None and incarnation != self._incarnation:
            return f"incarnation {incarnation} is gone, this is {self._incarnation}"
        if op not in self._ops:
            return f"unknown op {op!r}; known: {', '.join(sorted(self._ops))}"
        if page or ident[1] <= self._floors.get(ident[0], -1):
            return TOO_OLD
        if ident[0] not in self._floors and len(self._floors) >= self._limits.clients_max:
            return f"{len(self._floors)} others have asked, no more can be told from recordings"
        if self._pending >= self._limits.pending_max:
            return f"busy: {self._pending} requests are being carried out"
        return None

    async def _run(self, ident: RequestId, answer: _Answer, op: Op, args: dict[str, Any], peer: Any) -> None:
        try:
            result = _settled("ok", await op(args))
        except (RefusedError, ConfigError) as error:
            self.refused += 1
            result = _settled("refused", str(error))
        finally:
            self._pending -= 1
        answer.status, answer.pages, answer.asked_s = result.status, result.pages, time.monotonic()
        self._answer_bytes += answer.size
        self._aging.append(answer)
        self._forget_bytes(answer.asked_s - self._limits.answer_wall_s)
        self._forget_old(ident)
        await self._send(ident, answer, 0, peer)

    def _forget_bytes(self, before_s: float) -> None:
        """Drop the pages of answers that nobody has asked for since then: who looks often would fill the memory."""
        while self._aging and self._aging[0].asked_s < before_s:
            answer = self._aging.popleft()
            if answer.status != FORGOTTEN:
                self._answer_bytes -= answer.size
                answer.status, answer.pages = FORGOTTEN, []

    def _forget_old(self, newest: RequestId) -> None:
        too_many = len(self._answers) - self._limits.answers_max
        too_large = self._answer_bytes - self._limits.answer_bytes_max
        gone = []
        for ident, answer in self._answers.items():
            if too_many <= 0 and too_large <= 0:
                break
            if ident != newest and answer.status != "pending":
                gone.append(ident)
                too_many -= 1
                too_large -= answer.size
        for ident in gone:
            # The id goes below the floor: a later repetition is refused, so that it cannot run the op a second time.
            answer = self._answers.pop(ident)
            self._answer_bytes -= answer.size
            answer.status, answer.pages = FORGOTTEN, []
            client, sequence = ident
            self._floors[client] = max(sequence, self._floors.get(client, -1))

    async def _send(self, ident: RequestId, answer: _Answer, page: int, peer: Any) -> None:
        if page >= len(answer.pages):
            self._drop("no_such_page")
            return
        if not answer.uncut and self._cut_off():
            return  # the answer is kept for a client that asks again
        message = {
            "v": PROTOCOL_VERSION,
            "fabric": self._realm.fabric,
            "epoch": self._realm.epoch,
            "incarnation": self._incarnation,
            "id": ident,
            "status": answer.status,
            "page": page,
            "pages": len(answer.pages),
            "body": answer.pages[page],
        }
        datagram = seal(message, self._realm.secret)
        for _ in range(_SENDS_MAX):
            try:
                await self._stream.send(datagram, peer)
                return
            except OSError:
                self._drop("socket_error")


def _settled(status: str, result: Any) -> _Answer:
    answer = _Answer()
    body: bytes = msgpack.packb(result)
    if len(body) > PAGES_MAX * PAGE_BYTES:
        status, body = "refused", msgpack.packb(f"the answer has {len(body)} bytes, ask for less at a time")
    answer.status = status
    answer.pages = [body[start : start + PAGE_BYTES] for start in range(0, len(body), PAGE_BYTES)]
    return answer
