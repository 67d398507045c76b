"""Taps on the nodes of a running fabric: sets them, reads them, sets them again when a node returns, and ends them.

Owns the requests to the daemons, and merges their answers into one stream in time order. `mrcfabric.tap` says what a
tap keeps. `orchestrator.captures.capture` writes the packets.

**Order.** A packet that a node sends after instant T arrives after T. So when every node has said how far it has come,
all packets that arrive up to the least of these instants are known. They are handed on in the order of their arrival;
later ones wait for the next look.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, Protocol

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.tap import records_in
from mrcfabric.units import NEVER, Instant
from orchestrator.captures.wires import Wire, filters_of
from orchestrator.fabric.readings import ClockReading

RECORDS_MAX: Final = 32_768
"""How many packets all nodes together keep between two looks: the most that a look has to read."""
RECORDS_LEAST: Final = 64
"""How many packets each node keeps at least, however many nodes there are."""
ANSWER_WALL_S: Final = 2.0
"""A daemon that is silent for this long is asked again at the next look."""


class Asked(Protocol):
    """What this module needs of a fabric; `orchestrator.fabric.verbs.Verbs` explains it."""

    async def call(self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float = ...) -> Any: ...

    async def clock(self) -> ClockReading: ...


class Heard(NamedTuple):
    """One packet on one direction of a link."""

    at_ns: Instant
    """When its last bit reaches the far end."""
    wire: int
    """The number of the direction."""
    size: int
    """The size of the whole packet, in bytes."""
    data: bytes
    """The first bytes of it, as many as were kept."""


class _Post:
    """The tap of one node."""

    def __init__(self, node: str, wanted: PacketFilter, wires: Mapping[int, int]) -> None:
        self.node = node
        self.filter = wanted
        self.wires = wires
        """Port -> number of the direction."""
        self.since = 0
        self.set = False
        self.lost: dict[int, int] = {}
        """Port -> packets lost, as the present tap reports."""
        self.lost_before: Counter[int] = Counter()
        self.complete_ns: Instant = 0
        """Every packet that arrives up to here has been read; NEVER while the node is down."""


class FabricTaps:
    """Taps for these directions of links. Call `begin`, then `look` repeatedly, then `end`."""

    def __init__(
        self,
        fabric: Asked,
        wires: Sequence[Wire],
        wanted: PacketFilter,
        snap_bytes: int,
        records_max: int = RECORDS_MAX,
    ) -> None:
        """Takes what to keep, and how much.

        `wanted`: which packets (its `ports` are ignored); `snap_bytes`: how many first bytes of each packet;
        `records_max`: how many packets all nodes together keep for a look.
        """
        self._fabric = fabric
        self._ident = f"capture-{os.getpid()}-{os.urandom(4).hex()}"
        numbers: dict[str, dict[int, int]] = {}
        for number, wire in enumerate(wires):
            numbers.setdefault(wire.sender, {})[wire.port] = number
        filters = filters_of(wires, wanted)
        self._posts = [_Post(node, filters[node], ports) for node, ports in numbers.items()]
        share = max(RECORDS_LEAST, records_max // max(1, len(numbers)))
        self._args = {"id": self._ident, "snap_bytes": snap_bytes, "records_max": share}
        self._waiting: list[tuple[Instant, int, int, int, bytes]] = []
        self._sequence = 0
        self.complete_ns: Instant = 0
        """All packets that arrive up to here have been handed on, except those of nodes that are down."""
        self.silent: set[str] = set()
        """Nodes that did not answer at the latest look; their packets are still to come."""
        self.again: list[str] = []
        """Nodes whose tap was set again, one entry each time. Packets that they had not handed over are lost."""

    async def begin(self) -> None:
        """Set the taps; nodes that are down get theirs when they return.

        Raises RefusedError when a living node refuses another tap.
        """
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
        """End the taps on the nodes that live, and read their last counts of lost packets."""
        await asyncio.gather(*(self._end(post) for post in self._posts if post.set))

    async def _end(self, post: _Post) -> None:
        # If this fails, the tap has gone with its node or will end by itself.
        with suppress(NoAnswerError, RefusedError):
            answer = await self._fabric.call(post.node, "untap", {"id": self._ident}, ANSWER_WALL_S)
            post.lost = dict(answer["lost"])
        post.set = False

    def lost(self) -> dict[int, int]:
        """Number of a direction -> wanted packets that a tap had no room for."""
        found: Counter[int] = Counter()
        for post in self._posts:
            for lost in (post.lost, post.lost_before):
                found.update({post.wires[port]: count for port, count in lost.items()})
        return found

    # A look.

    async def look(self) -> list[Heard]:
        """The packets that can be handed on now, in time order. Raises RefusedError when the fabric has ended."""
        results = await asyncio.gather(*(self._read(post) for post in self._posts))
        for post, records in zip(self._posts, results, strict=True):
            for blob in records:
                for at_ns, port, size, data in records_in(blob):
                    self._sequence += 1
                    heappush(self._waiting, (at_ns, self._sequence, post.wires[port], size, data))
        if not any(post.set for post in self._posts):
            await self._fabric.clock()  # all nodes are down, or the fabric has ended: then this raises
        self.complete_ns = min((post.complete_ns for post in self._posts), default=NEVER)
        return self._until(self.complete_ns)

    def rest(self) -> list[Heard]:
        """The packets that were still waiting for their place in the order."""
        return self._until(NEVER)

    def _until(self, at_ns: Instant) -> list[Heard]:
        found = []
        while self._waiting and self._waiting[0][0] <= at_ns:
            arrival_ns, _, wire, size, data = heappop(self._waiting)
            found.append(Heard(arrival_ns, wire, size, data))
        return found

    async def _read(self, post: _Post) -> list[bytes]:
        """Read the records of one node since the last look, up to the newest at its first answer."""
        records: list[bytes] = []
        now_ns: Instant | None = None
        newest = 0
        try:
            if not post.set:
                await self._set(post)
                self.again.append(post.node)
            while now_ns is None or post.since < newest:
                asked = {"id": self._ident, "since": post.since}
                answer = await self._fabric.call(post.node, "tapped", asked, ANSWER_WALL_S)
                records.append(answer["records"])
                post.since, post.lost = answer["last"], dict(answer["lost"])
                if now_ns is None:
                    now_ns, newest = answer["now_ns"], answer["newest"]
            post.complete_ns = now_ns
            self.silent.discard(post.node)
        except NoAnswerError:
            self.silent.add(post.node)  # `complete_ns` stays, so later packets of other nodes wait
        except RefusedError:
            # It is down, or has returned without the tap: do not wait for it until it has a tap again.
            post.set, post.complete_ns = False, NEVER
            self.silent.discard(post.node)
        return records

    async def _set(self, post: _Post) -> None:
        args = {**self._args, "filter": post.filter.settings()}
        answer = await self._fabric.call(post.node, "tap", args, ANSWER_WALL_S)
        post.since, post.complete_ns, post.set = 0, answer["now_ns"], True
        post.lost_before.update(post.lost)
        post.lost = {}
