"""Why a packet waited: who paused its class, and what made that node ask for it.

Owns what one node has stated of pauses (`PauseRecord`), and the tree of a pause: the neighbour asked for it because
what came in there waits for some of its ports; one of these may be paused in turn, and so on to a port that is
congested itself, or to a NIC. `mrcfabric.witness` has the statements `pause` and `xoff`. A node states an XOFF before
anything that it does later, so the neighbour of a packet's port is known when the packet has come on; nodes that are
further away may not have told yet.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mrcfabric.topology import PortLink
from mrcfabric.units import Instant
from orchestrator.tracing.journey import Backlog, Waiting

PAUSE_STEPS: Final = ("pause", "xoff")
DEPTH_MAX: Final = 8
"""How far the tree of a pause is followed. No way has as many nodes."""
XOFFS_MAX: Final = 4096
"""How many XOFFs of one port and class are kept; the oldest is dropped first."""

_Queue: TypeAlias = tuple[int, int]
"""Port and class."""


class PauseRecord:
    """What one node has stated of pauses, in order, as far as it may still be needed."""

    def __init__(self) -> None:
        self._spans: dict[_Queue, list[tuple[Instant, Instant]]] = {}
        """When a class was paused at a port: since, until; in order, apart from each other."""
        self._asked: dict[_Queue, list[dict[str, Any]]] = {}
        """XOFFs that it sent."""

    def add(self, statement: dict[str, Any]) -> None:
        """Add the next statement of `PAUSE_STEPS`."""
        queue = statement["port"], statement["class"]
        if statement["step"] == "xoff":
            asked = self._asked.setdefault(queue, [])
            asked.append(statement)
            if len(asked) > XOFFS_MAX:
                del asked[0]
            return
        spans = self._spans.setdefault(queue, [])
        since_ns, until_ns = statement["since_ns"], statement["until_ns"]
        if spans and since_ns <= spans[-1][1]:
            since_ns = min(since_ns, spans.pop()[0])
        spans.append((since_ns, until_ns))

    def end(self, at_ns: Instant) -> None:
        """The node has begun anew: nobody pauses it."""
        for spans in self._spans.values():
            since_ns, until_ns = spans[-1]
            spans[-1] = since_ns, max(since_ns, min(until_ns, at_ns))

    def within(self, queue: _Queue, since_ns: Instant, until_ns: Instant) -> list[tuple[Instant, Instant]]:
        """The parts of this time in which the class was paused at the port."""
        spans = ((max(since_ns, begin), min(until_ns, end)) for begin, end in self._spans.get(queue, ()))
        return [(begin, end) for begin, end in spans if begin < end]

    def asked(self, queue: _Queue, at_ns: Instant) -> dict[str, Any] | None:
        """The latest XOFF sent by a port for a class up to this instant."""
        asked = self._asked.get(queue, [])
        place = bisect_right(asked, at_ns, key=lambda one: one["at_ns"])
        return asked[place - 1] if place else None

    def forget(self, before_ns: Instant) -> None:
        """Drop pauses that ended before this instant, and XOFFs that a later one had replaced by then."""
        for queue, spans in list(self._spans.items()):
            self._spans[queue] = spans = [span for span in spans if span[1] >= before_ns]
            if not spans:
                del self._spans[queue]
        for asked in self._asked.values():
            place = bisect_right(asked, before_ns, key=lambda one: one["at_ns"])
            del asked[: max(0, place - 1)]


def causes(
    record_of: Callable[[str], PauseRecord | None], cable_of: Callable[[str, int], PortLink], node: str, queue: _Queue,
    since_ns: Instant, until_ns: Instant,
) -> tuple[Backlog, ...]:  # fmt: skip
    """Why a class was paused at a port of a node for this time: the neighbour's reason, then those behind it.

    A port for which bytes waited may have been paused only after the neighbour had asked: then that is why it went on.
    """
    found: list[Backlog] = []
    port, cls = queue
    open_ = [(0, cable_of(node, port), since_ns)]
    seen = set()
    while open_:
        depth, cable, asked_ns = open_.pop(0)
        stated = record_of(cable.peer)
        statement = None if stated is None else stated.asked((cable.peer_port, cls), asked_ns)
        # In a ring of pauses one leads to itself.
        if stated is None or statement is None or (cable.peer, cable.peer_port) in seen:
            continue
        seen.add((cable.peer, cable.peer_port))
        backlog = _backlog(cable_of, depth, cable, statement, stated, until_ns)
        found.append(backlog)
        if depth + 1 < DEPTH_MAX:
            open_ += [
                (depth + 1, cable_of(cable.peer, one.port), max(backlog.at_ns, one.paused_since_ns))
                for one in backlog.waits
                if one.paused_since_ns is not None
            ]
    return tuple(found)


def _backlog(
    cable_of: Callable[[str, int], PortLink], depth: int, cable: PortLink, statement: dict[str, Any],
    stated: PauseRecord, until_ns: Instant,
) -> Backlog:  # fmt: skip
    here = cable.peer
    waits = []
    for port, waiting, since_ns in statement["waits"]:
        if since_ns is None:
            later = stated.within((port, statement["class"]), statement["at_ns"], until_ns)
            since_ns = later[0][0] if later else None
        waits.append(Waiting(port, cable_of(here, port).peer, waiting, since_ns))
    return Backlog(
        depth=depth,
        node=here,
        port=cable.peer_port,
        towards=cable_of(here, cable.peer_port).peer,
        at_ns=statement["at_ns"],
        why=statement["why"],
        bytes=statement["bytes"],
        waits=tuple(sorted(waits, key=lambda one: (-one.bytes, one.port))),
    )
