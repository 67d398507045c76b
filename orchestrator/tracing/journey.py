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
class Hop:
    """A node that sent the packet on, or was to."""

    node: str
    ingress: int | None
    """Port by which it came; None at the NIC that made it."""
    port: int | None
    """Port by which it goes; None when it was dropped before it had one."""
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
    """What a fault of the link did to it: corrupted, duplicated, reordered, delayed."""


@dataclass(frozen=True, slots=True)
class Way:
    """One packet from the NIC that sent it to where it came."""

    kind: str
    """data, sack, ack, nack."""
    psn: int
    ev: int
    plane: int
    """Port of the NIC by which it left."""
    size: int
    rtx: bool
    cause: str | None
    """Why it was sent again."""
    says: dict[str, Any]
    """What an acknowledgement says, empty for data: cack, caused (null: a probe), base and bitmap of a SACK; wanted and
    reason of a NACK; cack, syndrome and msn of a transport ACK."""
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

    @property
    def began_ns(self) -> Instant:
        """When it was sent for the first time."""
        return self.attempts[0].way.sent_ns

    @property
    def total_ns(self) -> int | None:
        """From the first sending to the acknowledgement."""
        return None if self.acknowledged_ns is None else self.acknowledged_ns - self.began_ns

    @property
    def complete(self) -> bool:
        """Nothing more can be told of it."""
        return self.acknowledged_ns is not None

    def record(self) -> dict[str, Any]:
        """As data for JSON, with the times that follow from others."""
        found: dict[str, Any] = _plain(self)
        return {**found, "began_ns": self.began_ns, "total_ns": self.total_ns}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
