"""The journey of one packet: every time it was sent, each hop of its way, and the acknowledgements of it.

Owns the records and their form as data; docs/PACKETS.md explains them. `joiner` makes them of what nodes state, `text`
shows them.
"""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TypeAlias

from mrcfabric.units import Instant

Outcome: TypeAlias = Literal["taken", "dropped", "lost", "waiting", "under way", "unseen", "untold"]
"""Of one way; see `Way.outcome`."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A port of a node that pauses its neighbour, for which bytes of that neighbour wait."""

    port: int
    towards: str
    """The node at the other end."""
    bytes: int
    paused_since_ns: Instant | None
    """Since when that node pauses this class, as it said last; None: it does not, so this port is congested itself."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Why one node asked its neighbour to pause a class."""

    depth: int
    """0: the neighbour of the packet's port; 1: a node that paused that neighbour; and so on."""
    node: str
    port: int
    """Its port to the neighbour that it pauses."""
    towards: str
    """That neighbour."""
    at_ns: Instant
    """When it asked."""
    why: str
    """`queue`: what came in by the port is over its threshold; `slow_receiver`: a NIC takes packets more slowly than
    they come; `storm`: a NIC pauses without a reason."""
    bytes: int
    """How much is held of what came in: of that port and class, or in a NIC of all ports."""
    waits: tuple[Waiting, ...]
    """The ports for which these bytes wait, most bytes first."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A part of a packet's wait in which its class was paused."""

    since_ns: Instant
    until_ns: Instant
    by: str
    """The neighbour at the port, which asked for it."""
    causes: tuple[Backlog, ...]
    """Why it did, and why others paused it in turn, by depth; empty where no witness knows."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A node that sent the packet on, or was to."""

    node: str
    ingress: int | None
    """Port by which it came; None at the NIC that made it."""
    port: int | None
    """Port by which it goes, or was to go; None when it was dropped before it had one."""
    at_ns: Instant
    """When its last bit was here, or when it was made."""
    data_bytes: int
    """Waiting before it at that port, by class."""
    control_bytes: int
    wire_ns: int
    """For how much longer the wire was taken."""
    verdict: str
    """`queued`, `trimmed`, or why it went no further."""
    start_ns: Instant | None
    """When it began to leave."""
    arrival_ns: Instant | None
    """When its last bit is at the next node, unless a fault of the link holds it back."""
    marked: bool
    """CE was set here."""
    touched: tuple[str, ...]
    """What a fault of the link did to it: corrupted, duplicated, reordered, delayed, retried."""
    traffic_class: int | None
    """The queue in which it waits, at a port that has eight."""
    class_bytes: int | None
    """Waiting before it in that class."""
    ecmp_members: tuple[int, ...]
    """The up-links among which a hash chose `port`; empty where none chose."""
    ecmp_hash: int | None
    pauses: tuple[Pause, ...]
    """The parts of its wait in which its class was paused."""

    @property
    def paused_ns(self) -> int:
        """For how long its class was paused while it waited."""
        return sum(pause.until_ns - pause.since_ns for pause in self.pauses)


@dataclass(frozen=True, slots=True)
class Way:
    """One packet from the NIC that sent it to where it came."""

    kind: str
    """data, sack, ack, nack."""
    psn: int
    ev: int | None
    """None: the packet has none (RC, UET)."""
    sport: int | None
    """RC and UET: the UDP source port, which ECMP hashes; on InfiniBand which of the LIDs of both ends the packet
    uses."""
    dlid: int | None
    """InfiniBand: the LID that it goes to."""
    plane: int
    """Port of the NIC by which it left."""
    size: int
    rtx: bool
    cause: str | None
    """Why it was sent again."""
    says: dict[str, Any]
    """What an acknowledgement says, empty for data: cack, caused (null: a probe), base and bitmap of a SACK; wanted and
    reason of a NACK; cack, syndrome and msn of a transport ACK; all of these but base and bitmap for RC."""
    sent_ns: Instant
    hops: tuple[Hop, ...]
    outcome: Outcome
    """A NIC has dealt with the packet (taken); a node refused it (dropped); a fault of a link lost it (lost); it stands
    in a queue (waiting); it is on a link (under way); the next node never saw it, though its time is over, because it
    was down or bits were turned over on the way (unseen); that node did not live, or had no room, to tell (untold)."""
    where: str
    """The node where the way ends, or link direction as `p0-t0-1>p0-t1-0` for a packet that was lost on it."""
    what: str
    """What the NIC did (placed, duplicate, trimmed, taken, or `dropped: ` and why), or why it went no further, or why
    nobody tells."""
    end_ns: Instant | None
    """When, None for a packet of which nobody knows."""

    @property
    def marked_at(self) -> str | None:
        """The node that set CE."""
        return next((hop.node for hop in self.hops if hop.marked), None)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The packet was sent once, for the first time or again."""

    way: Way
    answers: tuple[Way, ...]
    """The first acknowledgement that speaks of it, and where that came to nothing the next, until one arrived."""
    copies: int
    """Further arrivals at its end: a fault of a link had doubled it."""


@dataclass(frozen=True, slots=True)
class Hindsight:
    """A switch that routes for itself, on the way of a packet that was lost behind it."""

    node: str
    port: int
    towards: str
    sent_ns: Instant
    """When the packet was at it."""
    knew_ns: Instant | None
    """When it learnt that this way is dead; None: it has not."""
    by: str
    """By what: `carrier`, `BFD`, `hold timer`, `update` and so on."""
    peer: str
    left_ns: Instant | None
    """When it had written its table otherwise, and sent such packets elsewhere."""


@dataclass(frozen=True, slots=True)
class Journey:
    """One PSN of one QP, from its first sending to its acknowledgement."""

    source: str
    source_qpn: int | None
    destination: str
    destination_qpn: int
    psn: int
    attempts: tuple[Attempt, ...]
    placed_ns: Instant | None
    """When it was written to memory."""
    acknowledged_ns: Instant | None
    """When its sender heard so."""
    learnt: tuple[Hindsight, ...] = ()
    """What switches learnt later, of a packet that was lost."""

    @property
    def began_ns(self) -> Instant:
        """When it was sent for the first time."""
        return self.attempts[0].way.sent_ns

    @property
    def total_ns(self) -> int | None:
        """From the first sending to the acknowledgement."""
        return None if self.acknowledged_ns is None else self.acknowledged_ns - self.began_ns

    @property
    def paused_ns(self) -> int:
        """For how long the class of the packet was paused while it waited, at all hops of all its sendings together."""
        return sum(hop.paused_ns for attempt in self.attempts for hop in attempt.way.hops)

    @property
    def paused(self) -> bool:
        """Whether it, or an acknowledgement of it, waited anywhere while its class was paused."""
        ways = [way for attempt in self.attempts for way in (attempt.way, *attempt.answers)]
        return any(hop.pauses for way in ways for hop in way.hops)

    @property
    def complete(self) -> bool:
        """Nothing more can be told of it."""
        return self.acknowledged_ns is not None

    def record(self) -> dict[str, Any]:
        """As data for JSON, with the times that follow from others."""
        found: dict[str, Any] = _plain(self)
        return {**found, "began_ns": self.began_ns, "total_ns": self.total_ns, "paused_ns": self.paused_ns}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
