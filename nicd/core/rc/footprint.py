"""What the state of an RC NIC takes in hardware: every field with its width, and the sums per QP.

Owns widths and sums, and looks at no NIC; `nicd.core.rc.state_report` counts what a NIC really holds. An RC QP keeps to
one path, shares nothing with others, and with go-back-N has no table at all: what is out follows from two PSNs, and
what came early is dropped. Selective recovery has a record per packet that is out and per packet that came early,
placement in any order only the latter.

Published figures of such a context are 256 to 512 bytes. The fields here are fewer: those of this emulator, without
page tables, protection domains and completion queues. So a slot on the chip is `CONTEXT_BYTES`, and with selective
recovery the two tables besides, whole: a NIC lays them out beforehand. The emulator's own are as long as they are used.

IBTA 10.2 (QP context), 9.7 (reliable connections); annex A17 (addresses); DCQCN (SIGCOMM'15); IRN (SIGCOMM'18).
"""

from dataclasses import dataclass, fields
from typing import Final

from nicd.core.settings import NicSettings
from nicd.core.widths import (
    ADDRESS_BITS,
    KEY_BITS,
    LENGTH_BITS,
    MEMORY_KEY,
    PSN_BITS,
    QPN_BITS,
    SLOT_BITS,
    TIME_BITS,
    WORK_REQUEST,
    Width,
    record_bytes,
)

CONTEXT_BYTES: Final = 512
"""What a QP's context takes on the chip beside its tables: published figures of RoCE NICs are 256 to 512."""
TIMEOUT_BITS: Final = 36
"""Ticks of 128 ns, up to 4.096 us times 2 to 31."""
RATE_BITS: Final = 40
"""Up to 1 Tb/s in bit/s."""

QP_CONTEXT: Final = (
    Width("state", 3, "five states"),
    Width("qpn", QPN_BITS, "on the wire"),
    Width("peer_qpn", QPN_BITS, "on the wire"),
    Width("address", 128, "the peer's IPv6 address"),
    Width("way", 16 + 3 + 6, "UDP source port, port of the NIC, code point"),
    Width("sent", 3 * PSN_BITS, "requestor: oldest not acknowledged, next to send, first never sent"),
    Width("posted", 2 * PSN_BITS, "requestor: first without a message, first that has not reached the NIC"),
    Width("queue", 2 * SLOT_BITS, "requestor: first and last work request in the host's queue"),
    Width("message", PSN_BITS + LENGTH_BITS, "requestor: first PSN of the message being sent, and its length"),
    Width("out", LENGTH_BITS, "requestor: bytes in flight"),
    Width("msn_done", PSN_BITS, "requestor: AETH counts in 24 bits"),
    Width("timers", 2 * TIMEOUT_BITS, "requestor: last progress, when the time-out is due"),
    Width("retries", 5 + 3 + 3 + 1, "requestor: exponent of the time-out, retry_cnt, tries, why it went back"),
    Width("expected", PSN_BITS, "responder: PSN expected next"),
    Width("place", ADDRESS_BITS + KEY_BITS, "responder: where the next packet goes, because only a First says it"),
    Width("left", 2 * LENGTH_BITS, "responder: bytes of the message, and those that have not come"),
    Width("message_first", PSN_BITS, "responder: first PSN of the message, for go-back-0"),
    Width("msn", PSN_BITS, "responder: messages complete"),
    Width("since_ack", 16, "responder: packets since the last acknowledgement"),
    Width(
        "gap", 1 + PSN_BITS + TIME_BITS, "responder: whether it asked, how far behind the gap the last packet was, when"
    ),
)
"""What a QP has once."""

PINNED: Final = (Width("outer", 128, "address with the uSIDs of the path"),)
"""With `rc_path: pinned`."""

REACTION_POINT: Final = (
    Width("rate", 2 * RATE_BITS, "current and target"),
    Width("alpha", 30 + TIME_BITS, "and the instant for which it is right"),
    Width("cut", TIME_BITS, "when the rate was last lowered"),
    Width("steps", 2 * 16, "of time and of bytes since then"),
    Width("bytes", LENGTH_BITS, "since the last step by bytes"),
    Width("gate", TIME_BITS + RATE_BITS, "when the next packet may leave, and what the last one has not used"),
    Width("step", TIME_BITS, "when the next step by time is due"),
    Width("notified", TIME_BITS, "as a receiver: until when it sends no further notification"),
)
"""With `cc: dcqcn`."""

SENT: Final = (
    Width("psn", PSN_BITS, "on the wire"),
    Width("order", PSN_BITS, "how many left before it"),
    Width("state", 2, "out, lost and why"),
    Width("message", SLOT_BITS, "whose bytes they are"),
)
"""Selective recovery: per packet that is out, or lost and not sent again yet."""

EARLY: Final = (
    Width("psn", PSN_BITS, "on the wire"),
    Width("opcode", 4, "whether a message begins or ends with it, and whether there is an immediate"),
    Width("size", 13, "bytes of payload"),
    Width("length", LENGTH_BITS, "of its message, the same in all its packets"),
    Width("immediate", 32, "on the wire"),
)
"""Selective recovery, placement in any order: per packet that is placed and waits for its turn."""

ON_CHIP: Final = ("qp_context", "path", "reaction_point", "inflight", "early")
"""Pieces of a QP that a NIC needs for every packet; `work_queue` stays with the host."""


@dataclass(frozen=True, slots=True)
class RcCounts:
    """How many entries of each table one QP holds."""

    inflight: int
    """With selective recovery; go-back-N has no table."""
    early: int
    work_requests: int


def limits_of(knobs: NicSettings) -> RcCounts:
    """A QP with every table full."""
    sent = knobs.rc_psns_max if knobs.rc_recovery == "selective" else 0
    kept = knobs.rc_psns_max if knobs.rc_recovery in ("selective", "out_of_order") else 0
    # A packet that is expected next never waits.
    return RcCounts(sent, max(0, kept - 1), knobs.work_requests_max)


def within(counts: RcCounts, bounds: RcCounts) -> list[str]:
    """Names of the counts above their bounds; none in a NIC without a fault."""
    return [item.name for item in fields(RcCounts) if getattr(counts, item.name) > getattr(bounds, item.name)]


def qp_bytes(knobs: NicSettings, counts: RcCounts) -> dict[str, int]:
    """Bytes by piece of one QP with these counts."""
    return {
        "qp_context": record_bytes(QP_CONTEXT),
        "path": record_bytes(PINNED) if knobs.rc_path == "pinned" else 0,
        "reaction_point": record_bytes(REACTION_POINT) if knobs.cc == "dcqcn" else 0,
        "inflight": counts.inflight * record_bytes(SENT),
        "early": counts.early * record_bytes(EARLY),
        "work_queue": counts.work_requests * record_bytes(WORK_REQUEST),
    }


def on_chip_bytes(pieces: dict[str, int]) -> int:
    """Bytes of a QP's pieces that are on the chip."""
    return sum(pieces[name] for name in ON_CHIP)


def nic_bytes(regions: int) -> dict[str, int]:
    """Bytes by piece of a NIC beside its QPs."""
    return {"memory_keys": regions * record_bytes(MEMORY_KEY)}


def slot_bytes(knobs: NicSettings) -> int:
    """Bytes of on-chip memory for one QP: a context and its tables at their limits, unless a knob says otherwise."""
    tables = qp_bytes(knobs, limits_of(knobs))
    return knobs.sram_qp_bytes or CONTEXT_BYTES + tables["inflight"] + tables["early"]
