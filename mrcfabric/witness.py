"""Writes down, as statements, what a node does with the packets that are followed.

Owns what a statement says, and how many statements it keeps. `choice` says which packets are followed,
`witness_packets` recognises them. Ports (`egress`, `class_egress`), switches and NICs tell the witness what they do,
and `orchestrator.tracing` joins the statements of many nodes into the way of one packet. A witness changes nothing that
it sees: the event trace of a node is the same with and without it.

A statement is a table with its number `n` (from 1), `at_ns`, and `step`:

    offer   a packet wants to leave by `port`: `data_bytes` and `control_bytes` wait there already, by class, and the
            wire is busy for `wire_ns` more; `verdict` is `queued`, `trimmed`, or why it was refused. With `packet`,
            and at the NIC that sends data again, `cause`. At a port with eight classes also `class`, and `class_bytes`
            that wait in it; where a hash chose among several up-links, `ecmp` {members, hash}
    depart  the packet of statement `of` starts; its last bit is at the peer at `arrival_ns`; `marked`: CE was set here.
            With `print` where two packets may share it (RC, UET)
    carry   a fault of the link acted on it: `lost` names the fault that lost it, or `touched` lists what faults did
    drop    it never reached a queue: `reason`. With `packet`, and with `port`, `ecmp`, `class` and `class_bytes` as far
            as they were known by then
    take    a NIC has dealt with it: `verdict`. With `packet`
    pause   the neighbour at `port` has paused a `class` since `since_ns`; nothing of it starts before `until_ns`, which
            is `at_ns` when it may go on. Only while followed packets wait there, and when the first one comes to wait,
            or while this node asks a neighbour to pause this class: then it tells why that goes on
    xoff    this node asks the neighbour at `port` to pause a `class`: `why` is `queue`, `slow_receiver` or `storm`,
            and `bytes` that came in there are held. With `waits`, the ports for which they wait: [port, bytes, since
            when the class is paused there, or None]

`packet` is {kind, source, destination (numbers of NICs, or None), qpn, psn, rtx, ce, size, print}, with `ev` (MRC) or
`sport` (RC, UET); on InfiniBand also `dlid` and `sl`, and a `class` is a VL. Of UET `psn` has its lower 24 bits, and
`qpn` of an answer is 0 where no request was seen. `print` is a number that stays the same all the way; two packets that
MRC sent separately almost never share it, and RC sends the same packet again, as UET may. A SACK adds {cack, caused
(None: a probe), base, bitmap}, a NACK {reason}, a transport acknowledgement {syndrome, msn}; one of RC adds {cack,
syndrome, msn}, {caused} where recovery is selective, and a NAK {wanted, reason}.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from mrcfabric.choice import Choice
from mrcfabric.class_egress_config import TRIM_CLASS
from mrcfabric.node import Transmit
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.dscp import CE, Dscp, ecn_of
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions
from mrcfabric.witness_packets import PacketReader

STATEMENTS_MAX: Final = 16_384
"""Most statements kept for the reader; beyond it the oldest is dropped and counted in `lost`."""
WAITING_MAX: Final = 4096
"""Most packets in queues whose departure has not been told yet."""

_Queue: TypeAlias = tuple[int, int]
"""Port and class."""
_Entry: TypeAlias = tuple[Any, int, bool, int | None, _Queue | None]
"""A packet that waits: itself, which keeps its id() valid; number of its offer; whether it came marked; its print, of
RC; its queue, where there are eight."""


class Witness:
    """The statements of one node. The driver of a core makes it and hands it to the core's `set_witness`."""

    def __init__(self, choice: Choice, dscp: Dscp, options: WireOptions = DEFAULT_OPTIONS) -> None:
        self.lost = 0
        """Statements that were dropped before anybody read them."""
        self.look = PacketReader(choice, dscp, options).look
        """The `packet` of a statement about this packet if it is followed, else None. Never raises."""
        self._statements: deque[dict[str, Any]] = deque()
        self._last = 0
        self._told = 0
        self._waiting: dict[int, _Entry] = {}
        """By id() of the packet."""
        self._again: tuple[Buffer, str] = (b"", "")
        """The packet that a NIC has built to send again and offers to its port next, and the cause."""
        self._departed = (0, 0)
        """Of the latest departure: number of its offer (0: that packet is not followed), and when it was."""
        self._port: int | None = None
        """The port that a switch has chosen for the packet that is dealt with."""
        self._way: Callable[[], dict[str, Any] | None] | None = None
        """Tells how a hash chose that port."""
        self._class: tuple[int, int] | None = None
        """Class of that packet, and the bytes that wait in it."""
        self._queued: dict[_Queue, int] = {}
        """How many followed packets wait in a queue of a port with eight classes."""
        self._pauses: dict[_Queue, _Pause] = {}
        self._asking: set[_Queue] = set()
        """Classes that neighbours are asked to pause now, by port."""

    # What the node tells.

    def sent_again(self, packet: Buffer, cause: str) -> None:
        """A NIC has built a packet again for this cause, and offers this very object to its port next."""
        self._again = packet, cause

    def routed(self, port: int, way: Callable[[], dict[str, Any] | None]) -> None:
        """A switch has chosen the port of the packet that it offers or drops next. `way` tells {members, hash}."""
        self._port, self._way = port, way

    def classed(self, cls: int, waiting_bytes: int) -> None:
        """The packet that is offered next is of this class, in which so many bytes wait."""
        self._class = cls, waiting_bytes

    def offered(
        self, at_ns: Instant, port: int, packet: Buffer, found: tuple[int, int, int], verdict: str,
        waits: Buffer | None,
    ) -> None:  # fmt: skip
        """A packet came to a port. `found`: waiting bytes of data and of control, and for how long the wire is busy.

        `waits`: the object that is in the queue now; None: the packet was refused.
        """
        way, classed = self._way, self._class
        self._port = self._way = self._class = None
        about = self.look(packet)
        if about is None:
            return
        statement = {"at_ns": at_ns, "step": "offer", "port": port, "verdict": verdict, "packet": about}
        statement |= dict(zip(("data_bytes", "control_bytes", "wire_ns"), found, strict=True))
        queue = None
        if classed is not None:
            cls, statement["class_bytes"] = classed
            statement["class"] = cls = TRIM_CLASS if verdict == "trimmed" else cls
            queue = port, cls
        if packet is self._again[0]:
            statement["cause"] = self._again[1]
        number = self._state(statement | _ecmp(way))
        if waits is None:
            return
        if len(self._waiting) >= WAITING_MAX:
            self._leave(next(iter(self._waiting)))
        self._waiting[id(waits)] = (waits, number, about["ce"], about["print"] if "sport" in about else None, queue)
        if queue is not None:
            self._queued[queue] = self._queued.get(queue, 0) + 1
            self._tell_pause(at_ns, queue)

    def departed(self, start_ns: Instant, transmit: Transmit) -> None:
        """A port has begun to send a packet. Writes a statement if the packet is followed."""
        _, arrival_ns, packet = transmit
        entry = self._leave(id(packet))
        self._departed = (0 if entry is None else entry[1], start_ns)
        if entry is not None:
            marked = not entry[2] and ecn_of(packet) == CE
            statement = {"at_ns": start_ns, "step": "depart", "of": entry[1], "arrival_ns": arrival_ns}
            same = {} if entry[3] is None else {"print": entry[3]}
            self._state({**statement, "marked": marked, **same})

    def carried(self, lost: str | None, touched: list[str]) -> None:
        """Tells what faults of the link did to the packet that departed last."""
        number, at_ns = self._departed
        if number and (lost is not None or touched):
            statement: dict[str, Any] = {"at_ns": at_ns, "step": "carry", "of": number}
            self._state(statement | ({"touched": touched} if lost is None else {"lost": lost}))

    def dropped(self, at_ns: Instant, packet: Buffer, reason: str) -> None:
        """The node dropped a packet before it reached a port."""
        port, way, classed = self._port, self._way, self._class
        self._port = self._way = self._class = None
        about = self.look(packet)
        if about is None:
            return
        statement = {"at_ns": at_ns, "step": "drop", "reason": reason, "packet": about}
        if port is not None:
            statement["port"] = port
        if classed is not None:
            statement["class"], statement["class_bytes"] = classed
        self._state(statement | _ecmp(way))

    def taken(self, at_ns: Instant, about: dict[str, Any], verdict: str) -> None:
        """A NIC has dealt with a packet."""
        self._state({"at_ns": at_ns, "step": "take", "verdict": verdict, "packet": about})

    def paused(self, at_ns: Instant, port: int, cls: int, until_ns: Instant) -> None:
        """The neighbour at a port pauses a class until then; `until_ns` not after `at_ns`: it may go on."""
        queue = port, cls
        before = self._pauses.get(queue)
        since_ns = at_ns if before is None or before.until_ns <= at_ns else before.since_ns
        self._pauses[queue] = _Pause(since_ns, max(at_ns, until_ns))
        if self._queued.get(queue) or any(cls == asked for _, asked in self._asking):
            self._tell_pause(at_ns, queue)

    def asks_pause(
        self, at_ns: Instant, port: int, cls: int, why: str, held_bytes: int,
        waits: Sequence[tuple[int, int, Instant | None]] = (),
    ) -> None:  # fmt: skip
        """This node asks the neighbour at a port to pause a class; see the statement `xoff`."""
        self._asking.add((port, cls))
        statement = {"at_ns": at_ns, "step": "xoff", "port": port, "class": cls, "why": why, "bytes": held_bytes}
        self._state({**statement, "waits": [list(one) for one in waits]})

    def asks_no_more(self, port: int, cls: int) -> None:
        """The neighbour at a port may go on."""
        self._asking.discard((port, cls))

    # What others ask.

    def after(self, since: int, limit: int) -> dict[str, Any]:
        """At most `limit` statements after number `since`; forgets those up to `since`, which have been read.

        `last` is the next `since` to ask with, `lost` counts dropped statements, `more` says whether others wait.
        """
        statements = self._statements
        while statements and statements[0]["n"] <= since:
            statements.popleft()
        found = [statement for statement, _ in zip(statements, range(limit), strict=False)]
        last = found[-1]["n"] if found else max(since, self._last)
        self._told = max(self._told, min(last, self._last))
        return {"statements": found, "last": last, "lost": self.lost, "more": len(found) < len(statements)}

    def _leave(self, number: int) -> _Entry | None:
        """Take a packet out of those that wait, by its id()."""
        entry = self._waiting.pop(number, None)
        if entry is not None and entry[4] is not None:
            self._queued[entry[4]] -= 1
        return entry

    def _tell_pause(self, at_ns: Instant, queue: _Queue) -> None:
        """Write down the pause of a queue in which followed packets wait, if it is news."""
        pause = self._pauses.get(queue)
        if pause is None or pause.told or (pause.until_ns <= at_ns and pause.since_ns == at_ns):
            return
        pause.told = True
        if pause.until_ns < at_ns:
            return
        port, cls = queue
        statement = {"at_ns": at_ns, "step": "pause", "port": port, "class": cls}
        self._state({**statement, "since_ns": pause.since_ns, "until_ns": pause.until_ns})

    def _state(self, statement: dict[str, Any]) -> int:
        self._last += 1
        self._statements.append({"n": self._last, **statement})
        if len(self._statements) > STATEMENTS_MAX:
            self.lost += self._statements.popleft()["n"] > self._told
        return self._last


class _Pause:
    """The latest pause of one class at one port."""

    __slots__ = ("since_ns", "told", "until_ns")

    def __init__(self, since_ns: Instant, until_ns: Instant) -> None:
        self.since_ns = since_ns
        self.until_ns = until_ns
        self.told = False


def _ecmp(way: Callable[[], dict[str, Any] | None] | None) -> dict[str, Any]:
    """The part of a statement that says how a hash chose the port; empty where none did."""
    chosen = None if way is None else way()
    return {} if chosen is None else {"ecmp": chosen}
