"""One question for many daemons of a process: the daemon that is asked answers for the others as well.

Owns the op `together`: {op, args, nodes: {node: incarnation}} -> {node: answer}, of those nodes that this process
carries in that life, and that can be heard. It saves a request and an answer for each of them, and the process need not
be reached by each question on its own while it is busy. Only ops that read can be asked. A node that is cut off from
its control channel is left out, whoever is asked.

`metrics` {within_s} is answered in one piece: {"nodes": [names], "late": [names], "families": bytes}, the latter a zlib
stream of msgpack pairs [name of a metric, its series in the exposition format], so that the asker neither reads nor
writes counters again. Nodes that are not rendered after `within_s` of wall time are late, and have no series.
"""

import asyncio
import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

import msgpack

from mrcfabric.daemon_config import DaemonConfig
from mrcfabric.errors import RefusedError
from mrcfabric.glance import Glance
from mrcfabric.metrics import Family

OP: Final = "together"
NODES_MAX: Final = 1024
"""How many nodes one question may be for: it has to fit into one datagram."""
PIECE_WALL_NS: Final = 10_000_000
"""How long the answer is worked on before the process does other things."""
_LEVEL: Final = 1


class Sibling(Protocol):
    """What this module needs of a daemon."""

    config: DaemonConfig
    closed: bool

    def hears(self) -> bool:
        """Whether its control channel reaches it now."""
        ...

    def glance(self) -> Glance: ...

    def counters(self, parts: Any = None) -> dict[str, Any]: ...

    def families(self, counters: dict[str, Any]) -> list[Family]: ...


class Together:
    """The op of one daemon."""

    def __init__(self, own: Sibling) -> None:
        self.siblings: Callable[[], Iterable[Sibling]] = lambda: (own,)
        """All daemons of the process; set by whoever puts several into one."""

    async def answer(self, args: dict[str, Any]) -> dict[str, Any]:
        """The op. Raises RefusedError."""
        op, asked, nodes = args.get("op"), args.get("args", {}), args.get("nodes")
        if not isinstance(nodes, dict) or len(nodes) > NODES_MAX or not isinstance(asked, dict):
            raise RefusedError(f"together needs nodes (a table of at most {NODES_MAX}: node -> incarnation)")
        if op == "metrics":
            within_s = asked.get("within_s")
            if within_s is not None and (isinstance(within_s, bool) or not isinstance(within_s, int | float)):
                raise RefusedError("within_s: wanted a number of seconds")
            return await self._metrics(nodes, math.inf if within_s is None else within_s)
        if op not in ("glance", "counters"):
            raise RefusedError(f"together: {op!r} will not do (wanted: glance, counters or metrics)")
        parts = asked.get("parts")
        if parts is not None and not (isinstance(parts, list) and all(isinstance(one, str) for one in parts)):
            raise RefusedError("parts: wanted a list of names")
        found: dict[str, Any] = {}
        pause = _Pause()
        for one in self._asked(nodes):
            if not one.closed:  # it may have died since the one before
                found[one.config.node] = one.glance() if op == "glance" else one.counters(parts)
            await pause.give_way()
        return found

    async def _metrics(self, nodes: dict[str, int], within_s: float) -> dict[str, Any]:
        lines: dict[str, list[str]] = {}
        told: list[str] = []
        late: list[str] = []
        pause, until_s = _Pause(), time.monotonic() + within_s
        for one in self._asked(nodes):
            if time.monotonic() > until_s:
                late.append(one.config.node)
                continue
            if not one.closed:
                told.append(one.config.node)
                for family in one.families(one.counters()):
                    if family.lines:
                        lines.setdefault(family.definition.name, []).extend(family.lines)
            await pause.give_way()
        packer = zlib.compressobj(_LEVEL)
        pieces = []
        for name, series in lines.items():
            pieces.append(packer.compress(msgpack.packb((name, "\n".join(series)))))
            await pause.give_way()
        pieces.append(packer.flush())
        return {"nodes": told, "late": late, "families": b"".join(pieces)}

    def _asked(self, nodes: dict[str, int]) -> list[Sibling]:
        return [
            one for one in self.siblings()
            if nodes.get(one.config.node) == one.config.incarnation and not one.closed and one.hears()
        ]  # fmt: skip


def series_of(families: bytes) -> Iterator[tuple[str, str]]:
    """Read the families of an answer to `metrics`: name of a metric, its series. Raises ValueError."""
    try:
        unpacker = msgpack.Unpacker(max_buffer_size=0)
        unpacker.feed(zlib.decompress(families))
    except zlib.error as error:
        raise ValueError(f"families: {error}") from None
    yield from unpacker


class _Pause:
    """Gives way to the rest of the process now and then."""

    def __init__(self) -> None:
        self._until_ns = time.monotonic_ns() + PIECE_WALL_NS

    async def give_way(self) -> None:
        if time.monotonic_ns() > self._until_ns:
            await asyncio.sleep(0)
            self._until_ns = time.monotonic_ns() + PIECE_WALL_NS
