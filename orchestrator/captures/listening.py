"""Taps on the nodes of a running fabric: set, read in turns, set again on a node that has come back, ended.

Owns what is asked of the daemons and how the answers of all of them become one stream in time order. What a tap keeps
is `mrcfabric.tap`'s; what becomes of the packets, `orchestrator.captures.capture`'s.

**Order.** A packet that a node sends after instant T arrives after T. So when every node has said how far it has come,
all packets that arrive up to the smallest of these instants have been told, and are handed on in the order of their
arrival; later ones wait for the next look.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, Protocol

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.units import NEVER, Instant
from orchestrator.api.readings import ClockReading
from orchestrator.captures.wires import Wire, filters_of

RECORDS_MAX: Final = 16_384
"""Packets that a node keeps between two looks."""
ANSWER_WALL_S: Final = 2.0
"""A daemon that is silent for so long is asked again at the next look."""
PAGES_MAX: Final = 64
"""Answers taken from one node in one look."""


class Asked(Protocol):
    """What is asked of a fabric here; `orchestrator.api.verbs.Verbs` explains it."""

    async def call(self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float = ...) -> Any: ...

    async def clock(self) -> ClockReading: ...


class Heard(NamedTuple):
    """One packet on one direction of a link."""

    at_ns: Instant
    """Its last bit is at the far end."""
    wire: int
    """Number of the direction."""
    size: int
    """Bytes of the whole packet."""
    data: bytes
    """As many of them as were kept."""


class _Post:
    """The tap of one node."""

    def __init__(self, node: str, wanted: PacketFilter, wires: Mapping[int, int]) -> None:
        self.node = node
        self.filter = wanted
        self.wires = wires
        """Port -> number of the direction."""
        self.since = 0
        self.set = False
        self.lost = 0
        """Told by the tap that is set now."""
        self.lost_before = 0
        self.complete_ns: Instant = 0
        """All that arrives up to here has been told; NEVER while the node is down."""


class Listening:
    """Taps for these directions of links: `begin`, `look` again and again, `end`."""

    def __init__(
        self,
        fabric: Asked,
        wires: Sequence[Wire],
        wanted: PacketFilter,
        snap_bytes: int,
        records_max: int = RECORDS_MAX,
    ) -> None:
        """`wanted`: of the packets on them, `ports` aside; `snap_bytes`: first bytes that are kept of each."""
        self._fabric = fabric
        self._ident = f"capture-{os.getpid()}-{os.urandom(4).hex()}"
        self._args = {"id": self._ident, "snap_bytes": snap_bytes, "records_max": records_max}
        numbers: dict[str, dict[int, int]] = {}
        for number, wire in enumerate(wires):
            numbers.setdefault(wire.sender, {})[wire.port] = number
        filters = filters_of(wires, wanted)
        self._posts = [_Post(node, filters[node], ports) for node, ports in numbers.items()]
        self._waiting: list[tuple[Instant, int, int, int, bytes]] = []
        self._sequence = 0
        self.complete_ns: Instant = 0
        """All packets that arrive up to here have been handed on, nodes that are down aside."""
        self.again: list[str] = []
        """Nodes whose tap was set again, once for each time: what they had kept and not told is not here."""

    async def begin(self) -> None:
        """Set the taps; nodes that are down get theirs when they are back. Raises RefusedError when a node that lives
        will not have one more tap."""
        await asyncio.gather(*(self._begin(post) for post in self._posts))

    async def _begin(self, post: _Post) -> None:
        try:
            await self._set(post)
        except NoAnswerError:
            pass
        except RefusedError as error:
            if await self._lives(post.node):
                raise RefusedError(f"{post.node}: {error}") from None

    async def _lives(self, node: str) -> bool:
        try:
            await self._fabric.call(node, "status", {}, ANSWER_WALL_S)
        except (NoAnswerError, RefusedError):
            return False
        return True

    async def end(self) -> None:
        """Forget the taps, as far as their nodes live."""
        await asyncio.gather(*(self._end(post) for post in self._posts if post.set))

    async def _end(self, post: _Post) -> None:
        # Where it cannot be had, the tap has gone with its node, or ends by itself.
        with suppress(NoAnswerError, RefusedError):
            await self._fabric.call(post.node, "untap", {"id": self._ident}, ANSWER_WALL_S)
        post.set = False

    def lost(self, node: str) -> int:
        """Packets of a node that were wanted and were forgotten before they were read."""
        return sum(post.lost + post.lost_before for post in self._posts if post.node == node)

    # A look.

    async def look(self) -> list[Heard]:
        """What can be told now, in time order. Raises RefusedError when the fabric has ended."""
        results = await asyncio.gather(*(self._read(post) for post in self._posts))
        for post, records in zip(self._posts, results, strict=True):
            for _, at_ns, port, size, data in records:
                self._sequence += 1
                heappush(self._waiting, (at_ns, self._sequence, post.wires[port], size, data))
        if not any(post.set for post in self._posts):
            await self._fabric.clock()  # all nodes down, or the whole fabric: then nobody answers
        self.complete_ns = min((post.complete_ns for post in self._posts), default=NEVER)
        return self._until(self.complete_ns)

    def rest(self) -> list[Heard]:
        """What had still been waiting: packets that are on their way."""
        return self._until(NEVER)

    def _until(self, at_ns: Instant) -> list[Heard]:
        found = []
        while self._waiting and self._waiting[0][0] <= at_ns:
            arrival_ns, _, wire, size, data = heappop(self._waiting)
            found.append(Heard(arrival_ns, wire, size, data))
        return found

    async def _read(self, post: _Post) -> list[list[Any]]:
        """The records of one node since the last look."""
        records: list[list[Any]] = []
        try:
            if not post.set:
                await self._set(post)
                self.again.append(post.node)
            for _ in range(PAGES_MAX):
                asked = {"id": self._ident, "since": post.since}
                answer = await self._fabric.call(post.node, "tapped", asked, ANSWER_WALL_S)
                records += answer["records"]
                post.since, post.lost = answer["last"], answer["lost"]
                if not answer["more"]:
                    post.complete_ns = answer["now_ns"]
                    break
        except NoAnswerError:
            pass  # what it has to tell may still come: nothing later is told before
        except RefusedError:
            # It is down, or came back without the tap: nobody waits for it until it has one again.
            post.set, post.complete_ns = False, NEVER
        return records

    async def _set(self, post: _Post) -> None:
        args = {**self._args, "filter": post.filter.settings()}
        answer = await self._fabric.call(post.node, "tap", args, ANSWER_WALL_S)
        post.since, post.complete_ns, post.set = 0, answer["now_ns"], True
        post.lost_before, post.lost = post.lost_before + post.lost, 0
