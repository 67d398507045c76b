"""Everything a NIC core reports, and nothing else.

Owns the records handed out by `drain_events()`. Metrics and logs are derived from these and from counters,
outside the core. `record()` is flat and holds only str, int, bool and None, so that it can be hashed into a
trace; it leaves out what differs between two drivers of the same run (tokens of commands).
"""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mrcfabric.pause_spells import PauseEvent
from mrcfabric.units import Instant

WRITE: Final = "write"
WRITE_WITH_IMM: Final = "write_with_imm"
RECV_WITH_IMM: Final = "recv_with_imm"

STATUS_OK: Final = "ok"
STATUS_RETRY_EXCEEDED: Final = "retry_exceeded"
STATUS_REMOTE_INVALID: Final = "remote_invalid_request"
STATUS_FLUSHED: Final = "flushed"

Result: TypeAlias = dict[str, int | str | bool | None]
"""What came of a command."""


@dataclass(slots=True)
class CommandDone:
    """The answer to the command with this token."""

    at_ns: Instant
    token: int
    error: str | None
    result: Result

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "command_done", "error": self.error, **self.result}


@dataclass(slots=True)
class Completion:
    """A CQE: one per posted write at the requestor, one per WRITE_WITH_IMM, in send order, at the responder."""

    at_ns: Instant
    qpn: int
    wr_id: int
    """The requestor's own number; at the responder the message's MSN (16 bits)."""
    status: str
    """One of the STATUS_ names of this module."""
    opcode: str
    """WRITE, WRITE_WITH_IMM (requestor) or RECV_WITH_IMM (responder)."""
    byte_len: int
    imm: int | None

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns,
            "kind": "completion",
            "qpn": self.qpn,
            "wr_id": self.wr_id,
            "status": self.status,
            "opcode": self.opcode,
            "byte_len": self.byte_len,
            "imm": self.imm,
        }


@dataclass(slots=True)
class EvTransition:
    """An EV of a QP went into or came out of ASSUMED_BAD or DENIED (visits to SKIP are only counted)."""

    at_ns: Instant
    qpn: int
    ev: int
    plane: int
    path: int
    """T1 index of the path; 0 for a pair below the same T0."""
    source: str
    """State before: good, skip, assumed_bad, denied."""
    target: str
    """State after."""
    cause: str
    section: str
    """Where the rule stands."""

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns,
            "kind": "ev_transition",
            "qpn": self.qpn,
            "ev": self.ev,
            "plane": self.plane,
            "path": self.path,
            "source": self.source,
            "target": self.target,
            "cause": self.cause,
            "section": self.section,
        }


@dataclass(slots=True)
class PortChange:
    """One of our own ports lost or regained carrier."""

    at_ns: Instant
    port: int
    up: bool

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "port_change", "port": self.port, "up": self.up}


@dataclass(slots=True)
class PeerPortChange:
    """A peer told us that one of its ports is reachable, or no longer is."""

    at_ns: Instant
    peer_index: int
    port: int
    up: bool

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns,
            "kind": "peer_port_change",
            "peer_index": self.peer_index,
            "port": self.port,
            "up": self.up,
        }


@dataclass(slots=True)
class QpChange:
    """A QP changed state (reset, init, rtr, rts, error)."""

    at_ns: Instant
    qpn: int
    source: str
    target: str
    reason: str

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns,
            "kind": "qp_change",
            "qpn": self.qpn,
            "source": self.source,
            "target": self.target,
            "reason": self.reason,
        }


@dataclass(slots=True)
class PathMigrated:
    """A QP has taken its second path."""

    at_ns: Instant
    qpn: int
    port: int
    lid_bits: int
    """Which of the LIDs of both ends it uses now."""

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "path_migrated", "qpn": self.qpn, "port": self.port,
            "lid_bits": self.lid_bits,
        }  # fmt: skip


@dataclass(slots=True)
class SubnetSwept:
    """A subnet manager has found its subnet and written what differed."""

    at_ns: Instant
    port: int
    """The NIC's port, from 0."""
    switches: int
    nics: int
    blocks: int
    """Blocks of tables that it wrote."""
    requests: int
    took_ns: int

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns, "kind": "subnet_swept", "port": self.port, "switches": self.switches,
            "nics": self.nics, "blocks": self.blocks, "requests": self.requests, "took_ns": self.took_ns,
        }  # fmt: skip


@dataclass(slots=True)
class Retransmit:
    """Packets of one QP put up for retransmission at one instant for one cause."""

    at_ns: Instant
    qpn: int
    cause: str
    """gap, timeout, trim, nack, port_down."""
    count: int

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns,
            "kind": "retransmit",
            "qpn": self.qpn,
            "cause": self.cause,
            "count": self.count,
        }


@dataclass(slots=True)
class RankChange:
    """A rank of a job that may be restarted has failed, was ended with its job, or has begun again."""

    at_ns: Instant
    program: str
    rank: int
    attempt: int
    state: str
    """running, failed or stopped."""
    step: int
    """The step that it begins with, or that it was in."""
    reason: str

    def record(self) -> dict[str, Any]:
        return {
            "at_ns": self.at_ns,
            "kind": "rank_change",
            "program": self.program,
            "rank": self.rank,
            "attempt": self.attempt,
            "state": self.state,
            "step": self.step,
            "reason": self.reason,
        }


NicEvent: TypeAlias = (
    CommandDone
    | Completion
    | EvTransition
    | PortChange
    | PeerPortChange
    | QpChange
    | PathMigrated
    | RankChange
    | Retransmit
    | SubnetSwept
    | PauseEvent
)
