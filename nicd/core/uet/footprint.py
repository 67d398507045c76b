"""What the state of a UET NIC takes in hardware: every field with its width, and the sums per QP.

Owns widths and sums, and looks at no NIC; `nicd.core.uet.state_report` counts what a NIC really holds. A QP here has a
context of its own as an initiator; the state of the targets that its peer opens is counted with it. What QPs to one
destination share (window, credit) is small and counted with each. UEC PDS (contexts), UEC CMS (congestion context).
"""

from dataclasses import dataclass, fields
from typing import Final

from nicd.core.settings import NicSettings
from nicd.core.widths import (
    LENGTH_BITS,
    MEMORY_KEY,
    QPN_BITS,
    SLOT_BITS,
    TIME_BITS,
    WORK_REQUEST,
    Width,
    record_bytes,
)

PSN_BITS: Final = 32
PDCID_BITS: Final = 16
COUNT_BITS: Final = 24
MPR_UNIT: Final = 128

INITIATOR: Final = (
    Width("state", 3, "five states"),
    Width("qpn", 2 * QPN_BITS, "both ends"),
    Width("address", 128, "the peer's IPv6 address"),
    Width("pdcids", 2 * PDCID_BITS, "both ends"),
    Width("psns", 3 * PSN_BITS, "first, oldest not acknowledged, next"),
    Width("queue", 2 * SLOT_BITS, "first and last work request in the host's queue"),
    Width("out", 2 * LENGTH_BITS, "bytes waiting, bytes lost"),
    Width("timers", 3 * TIME_BITS, "heard, asked, when the timer is due"),
    Width("retries", 5 + 5 + 5, "budget, unanswered questions"),
    Width("patience", 2 * TIME_BITS, "how much later packets may be, when that last fell"),
    Width("turn", 5 + 8, "plane whose turn it is, planes left"),
)
"""What a QP has once as an initiator."""
TARGET: Final = (
    Width("pdcids", 2 * PDCID_BITS, "both ends"),
    Width("qpn", 2 * QPN_BITS, "both ends"),
    Width("psns", 4 * PSN_BITS, "first, expected, cleared, bitmap shown up to"),
    Width("ack", PSN_BITS + 16 + 5 + 16 + TIME_BITS, "packet that waits for its answer, bytes since the last"),
    Width("received", LENGTH_BITS, "bytes placed"),
)
"""What a context has at its target."""
WINDOW: Final = (
    Width("cwnd", 3 * LENGTH_BITS, "window, in flight, largest"),
    Width("delay", 4 * TIME_BITS, "average, latest, base RTT, end of the span"),
    Width("sums", 4 * LENGTH_BITS, "increase, delivered, ignored, acknowledged without delay"),
    Width("times", 3 * TIME_BITS, "last adjustment, last eta, last decrease"),
)
"""NSCC, per plane."""
CREDIT: Final = (
    Width("source", 2 * COUNT_BITS + 32, "granted, wanted, left"),
    Width("claim", 2 * COUNT_BITS + 1, "as a receiver: granted, wanted, in the ring"),
)
"""RCCC."""
ENTROPY: Final = (Width("entropy", 16, "on the wire"), Width("penalty", 4, "turns to sit out"))
"""Per entropy that a policy keeps."""
SENT: Final = (
    Width("psn", PSN_BITS, "on the wire"),
    Width("path", 16 + 5, "entropy and plane"),
    Width("left", TIME_BITS, "when it left"),
    Width("first", TIME_BITS + 16 + 5, "when, by which entropy and plane its first transmission left"),
    Width("order", PSN_BITS, "how many left before it"),
    Width("state", 2 + 10 + 5, "out or lost, tries, silences"),
    Width("message", SLOT_BITS, "whose bytes they are"),
)
"""Per packet that is out, or lost and not sent again yet."""
OPEN_MESSAGE: Final = (
    Width("id", 16, "on the wire"),
    Width("length", 2 * LENGTH_BITS, "whole, and what has not come"),
    Width("last", PSN_BITS, "its last PSN"),
    Width("immediate", 33, "if there is one"),
)
"""Per message under way at a target."""
KEPT_RESPONSE: Final = (
    Width("psn", PSN_BITS, "of the request"),
    Width("answer", 6 + 16 + LENGTH_BITS, "return code, message id, length"),
)
"""Per response that a target keeps until it is cleared."""
ON_CHIP: Final = ("initiator", "target", "window", "credit", "entropies", "inflight", "bitmap", "messages", "responses")
"""Pieces of a QP that a NIC needs for every packet; `work_queue` stays with the host."""


@dataclass(frozen=True, slots=True)
class UetCounts:
    """How many entries of each table one QP holds."""

    inflight: int
    early: int
    """Packets behind a gap: one bit each in a window that has to reach so far."""
    messages: int
    work_requests: int
    responses: int = 0
    """Kept until they are cleared."""


def limits_of(knobs: NicSettings) -> UetCounts:
    """A QP with every table full, and one context as a target."""
    psns = knobs.mpr_units * MPR_UNIT
    return UetCounts(psns, psns - 1, psns, knobs.work_requests_max, knobs.uet_responses_max)


def within(counts: UetCounts, bounds: UetCounts) -> list[str]:
    """Names of the counts above their bounds; none in a NIC without a fault."""
    return [item.name for item in fields(UetCounts) if getattr(counts, item.name) > getattr(bounds, item.name)]


def qp_bytes(knobs: NicSettings, counts: UetCounts) -> dict[str, int]:
    """Bytes by piece of one QP with these counts."""
    entropies = knobs.evs_active
    if knobs.uet_mode == "rod":
        entropies = 1
    elif knobs.uet_path == "reps":
        entropies = min(entropies, knobs.uet_reps_ring)
    return {
        "initiator": record_bytes(INITIATOR),
        "target": record_bytes(TARGET),
        "window": record_bytes(WINDOW) if knobs.uet_cc in ("nscc", "both") else 0,
        "credit": record_bytes(CREDIT) if knobs.uet_cc in ("rccc", "both") else 0,
        "entropies": entropies * record_bytes(ENTROPY),
        "inflight": counts.inflight * record_bytes(SENT),
        "bitmap": -(-knobs.mpr_units * MPR_UNIT // 8),
        "messages": counts.messages * record_bytes(OPEN_MESSAGE),
        "responses": counts.responses * record_bytes(KEPT_RESPONSE),
        "work_queue": counts.work_requests * record_bytes(WORK_REQUEST),
    }


def on_chip_bytes(pieces: dict[str, int]) -> int:
    """Bytes of a QP's pieces that are on the chip."""
    return sum(pieces[name] for name in ON_CHIP)


def nic_bytes(regions: int) -> dict[str, int]:
    """Bytes by piece of a NIC beside its QPs."""
    return {"memory_keys": regions * record_bytes(MEMORY_KEY)}


def slot_bytes(knobs: NicSettings) -> int:
    """Bytes of on-chip memory for one QP: every table at its limit, unless a knob says otherwise."""
    return knobs.sram_qp_bytes or on_chip_bytes(qp_bytes(knobs, limits_of(knobs)))
