"""What the state of a NIC takes in hardware: every field with its width, and the sums per QP, per peer and per NIC.

Owns widths and sums, and looks at no NIC; `nicd.core.widths` has the records that all transports have in common.
`nicd.core.mrc.state_report` counts what a NIC really holds, and `nicd.core.process_size` measures the CPython objects
that hold it. The widths are ours: MRC 1.0 gives those of fields that travel, and every other one is the least that its
knob or its range needs. A record is rounded up to whole bytes, as in a memory; nothing is added for parity, alignment
or free lists.

MRC 1.0 section 3 (what a QP is made of), 7.5 (fields that travel), 11.2 (EV states); UEC CMS (congestion context).
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

from nicd.core.settings import MPR_UNIT, NicSettings
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

# MRC 1.0 7.5
MSN_BITS: Final = 16
RCVD_BITS: Final = 24
# MRC 1.0 7.5: M of a SACK knows none, SKIP_ONCE, ALWAYS_SKIP; MRC 1.0 11.2: four states.
EV_STATE_BITS: Final = 2
# The largest profile has 2,048 active and as many reserve EVs.
EV_INDEX_BITS: Final = 12
# 7 linear and 25 exponential retries (controller API).
TRIES_BITS: Final = 6
# One of 65,536 destinations; a fabric of MRC has some 100,000 NICs, a NIC's QPs lead to far fewer.
PEER_BITS: Final = 16
# 16 MiB: 1.5 bandwidth-delay products of 800 Gb/s over 100 us.
WINDOW_BITS: Final = 24
# `reverse_silent_probes` is at most this.
SILENCE_BITS: Final = 4
# A round trip in ticks of 1 ns, up to 1 ms.
DELAY_BITS: Final = 20

QP_CONTEXT: Final = (
    Width("state", 3, "five states"),
    Width("qpn", QPN_BITS, "on the wire"),
    Width("peer_qpn", QPN_BITS, "on the wire"),
    Width("peer", PEER_BITS, "row of the destination"),
    Width("profile", 16, "EV profile it is tied to"),
    Width("planes", 8, "up at both ends and with an active EV: eight planes"),
    Width("negotiated", 8 + 8 + 8 + 8 + 4, "MPR and WIMM window both ways, four capabilities"),
    Width("psn_next", PSN_BITS, "requestor"),
    Width("cack", PSN_BITS, "requestor: all up to here is acknowledged"),
    Width("msn_next", MSN_BITS, "requestor"),
    Width("msn_done", PSN_BITS, "requestor: AETH counts in 24 bits"),
    Width("rqmsn_next", MSN_BITS, "requestor: with-immediate messages"),
    Width("immediates_out", 8, "requestor: at most the peer's WIMM window"),
    Width("queue", 2 * SLOT_BITS, "requestor: first and last work request in the host's queue"),
    Width("offset", LENGTH_BITS, "requestor: how much of the first message has been sent"),
    Width("latest_acked", PSN_BITS + TIME_BITS, "requestor: number and time of the latest transmission that arrived"),
    Width("latest_sack", PSN_BITS + TIME_BITS, "requestor: what the round trip of a SACK is measured from"),
    Width("asked", PSN_BITS, "requestor: number of the last transmission with the A bit"),
    Width("peer_says", 15 + RCVD_BITS, "requestor: out_of_order and received_bytes of the last SACK"),
    Width("patience", DELAY_BITS * 3, "requestor: reorder threshold, worst round trip of two spans"),
    Width("timers", 4 * TIME_BITS, "requestor: oldest packet, last sign of life, last question, stranded planes"),
    Width("unanswered", TRIES_BITS, "requestor: questions in a row without an answer"),
    Width("expected", PSN_BITS, "responder: lowest PSN that has not arrived"),
    Width("out_of_order", 15, "responder: on the wire"),
    Width("received_bytes", RCVD_BITS, "responder: on the wire"),
    Width("since_sack", 16 + TIME_BITS + 2 * PSN_BITS, "responder: bytes, time and span of PSNs since the last SACK"),
    Width("last_arrival", PSN_BITS + 32 + 16 + TIME_BITS, "responder: PSN, EV, time stamp and time a SACK speaks of"),
    Width("messages_done", PSN_BITS, "responder"),
)
"""What a QP has once, beside its tables."""

EV_EXTRA: Final = (
    Width("state", EV_STATE_BITS, "GOOD, SKIP, ASSUMED_BAD, DENIED"),
    Width("active", 1, "in the active set or in the reserve"),
)
"""Per EV of a profile, beside the value itself."""

SCAN: Final = (Width("scan", 3 * EV_INDEX_BITS, "position, stride and rest of the turn"),)
"""Per plane of a profile: the pseudo-random scan of its active set."""

INFLIGHT: Final = (
    Width("psn", PSN_BITS, "on the wire"),
    Width("ev", EV_INDEX_BITS, "which path to accuse"),
    Width("sent", TIME_BITS, "when it left"),
    Width("order", PSN_BITS, "how many left before it, for gaps"),
    Width("tries", TRIES_BITS, "of the retry budget"),
    Width("silences", TRIES_BITS, "those of them that were for a timeout: they double the RTO"),
    Width("state", 2, "out, lost, acknowledged"),
    Width("message", SLOT_BITS, "whose bytes they are: the offset follows from the PSN"),
)
"""Per PSN that is out."""

STASH: Final = (
    Width("msn", MSN_BITS, "its record, whose length the CQE names"),
    Width("immediate", 33, "on the wire, and whether the slot is taken"),
)
"""Per with-immediate message that waits for its turn; RQMSN is the number of the slot."""

MESSAGE: Final = (
    Width("msn", MSN_BITS, "on the wire"),
    Width("rqmsn", MSN_BITS, "the same in all packets of a with-immediate message"),
    Width("anchor", ADDRESS_BITS, "address of PSN 0, as every packet of the message implies it"),
    Width("r_key", KEY_BITS, "the same in all packets"),
    Width("length", LENGTH_BITS, "the same in all packets"),
    Width("left", PSN_BITS, "packets that have not arrived"),
    Width("ends", 2 * PSN_BITS, "first and last PSN, or the span of those seen before either is known"),
    Width("done", 2, "acknowledged before its turn; ends known"),
)
"""Per message begun and not complete in order: what its packets must agree with."""

PROBE: Final = (Width("id", 16, "on the wire"), Width("ev", EV_INDEX_BITS, "which was asked"))
"""Per probe that waits for its answer."""

PROBATION: Final = (
    Width("next", TIME_BITS, "when the next probe is due"),
    Width("period", 4, "doublings of the plain period"),
    Width("successes", 4, "answers in a row"),
)
"""Per EV that is ASSUMED_BAD."""

CONGESTION: Final = (
    Width("window", 3 * WINDOW_BITS + 1, "cwnd, the largest it may be, and bytes in flight with a sign"),
    Width("base_rtt", DELAY_BITS, "what delays are measured against"),
    Width("delay", DELAY_BITS + 10, "smoothed, with ten bits of fraction"),
    Width("increase", 2 * WINDOW_BITS, "sum of increases, bytes times window"),
    Width("adjust", WINDOW_BITS + 2 * TIME_BITS, "bytes and time since they were applied, and since eta was"),
    Width("decrease", TIME_BITS, "once per round trip"),
    Width("quick_adapt", TIME_BITS + 2 * WINDOW_BITS + 2, "end of the span, bytes delivered, bytes to ignore, trigger"),
    Width("fast_increase", WINDOW_BITS + 1, "bytes at no delay"),
    Width("penalised", WINDOW_BITS + 1, "and the window from before it"),
    Width("penalising", 2 * TIME_BITS, "as a receiver: when the peer last sent, until when it is penalised"),
)
"""Per destination and plane (or per destination, `congestion_scope`): NSCC, shared by the QPs to it."""

DESTINATION: Final = (
    Width("address", 128, "inner IPv6 address"),
    Width("template", 4 * 16, "uSIDs T0, T1, T0, destination; plane and up-link come from the EV"),
    Width("port_update", 16 + 16 + TIME_BITS + 4, "last number heard, own number, when to repeat, how often"),
    Width("reverse_timer", 2 * TIME_BITS, "last data, next refresh"),
)
"""Per destination, beside its planes."""

EV_QUESTION: Final = (Width("id", 16, "on the wire"),)
"""Per endpoint EV probe that waits for its answer, beside the EV."""

PROFILE_EV: Final = (
    Width("ev", 32, "what travels"),
    Width("port", 6, "egress port, or none"),
    Width("denied", 1, "for all QPs"),
)
"""Per EV of a profile that has EVs of its own, beside the value: 16 to 256 bits by its format. Its QPs share them."""

SKIP_STAY: Final = (Width("over", TIME_BITS, "when it ends"), Width("ev", EV_INDEX_BITS, "whose"))
"""Per EV in SKIP, which lasts `skip_ns` at most."""

MARK_RUN: Final = (Width("ev", 32, "the peer's, as it travels"), Width("marks", 4, "in a row"))
"""Per marked EV of a peer, where marks are counted (`always_skip_marks`)."""

DENIAL: Final = (Width("plane", 5, ""), Width("path", 15, "and whether it is the whole plane"), Width("peer", 17, ""))
"""Per entry of the standing deny list."""

ON_CHIP: Final = (
    "qp_context",
    "ev_table",
    "ev_sets",
    "receive_bitmap",
    "inflight",
    "messages",
    "wimm_stash",
    "probes",
    "ev_clocks",
)
"""Pieces of a QP that a NIC needs for every packet; `work_queue` stays with the host."""


@dataclass(slots=True)
class QpCounts:
    """How many entries of each table one QP holds."""

    evs: int
    planes: int
    bitmap_bits: int
    """From the lowest PSN that has not arrived to the highest that has."""
    inflight: int
    messages: int
    stash: int
    probes: int
    probation: int
    work_requests: int
    stays: int = 0
    """EVs in SKIP."""
    mark_runs: int = 0
    """EVs of the peer whose marks are counted."""


def message_records(knobs: NicSettings, psns: int) -> int:
    """Records of messages that a responder with a tracking window of `psns` keeps at most."""
    # The message that is next in order always has its place.
    return min(psns, knobs.messages_open_max + 1) if knobs.messages_open_max else psns


def limits_of(knobs: NicSettings, planes: int) -> QpCounts:
    """A QP with every table full. The peer's window is taken to be as large as our own."""
    evs = knobs.evs_active + knobs.evs_reserve
    psns = knobs.mpr_units * MPR_UNIT
    return QpCounts(
        evs=evs,
        planes=planes,
        bitmap_bits=min(psns, knobs.bitmap_psns or psns),
        inflight=psns,
        messages=message_records(knobs, psns),
        # The immediate that is next always has its place.
        stash=knobs.max_wimm + 1,
        probes=knobs.probes_outstanding_max,
        probation=evs,
        # Messages that completed early stay until those before them complete; `work_requests_max` does not count them.
        work_requests=knobs.work_requests_max + psns,
        stays=evs,
        mark_runs=knobs.marked_evs_max if knobs.always_skip_marks else 0,
    )


def within(counts: QpCounts, bounds: QpCounts) -> list[str]:
    """Names of the counts above their bounds; none in a NIC without a fault."""
    return [item.name for item in fields(QpCounts) if getattr(counts, item.name) > getattr(bounds, item.name)]


def peak_of(one: QpCounts, two: QpCounts) -> QpCounts:
    """The larger of each count."""
    return QpCounts(*(max(getattr(one, item.name), getattr(two, item.name)) for item in fields(QpCounts)))


def qp_bytes(counts: QpCounts, ev_bits: int) -> dict[str, int]:
    """Bytes by piece of one QP with these counts."""
    return {
        "qp_context": record_bytes(QP_CONTEXT),
        "ev_table": (counts.evs * ev_bits + 7) // 8,
        "ev_sets": (counts.evs * sum(field.bits for field in EV_EXTRA) + 7) // 8 + counts.planes * record_bytes(SCAN),
        "receive_bitmap": (counts.bitmap_bits + 7) // 8,
        "inflight": counts.inflight * record_bytes(INFLIGHT),
        "messages": counts.messages * record_bytes(MESSAGE),
        "wimm_stash": counts.stash * record_bytes(STASH),
        "probes": counts.probes * record_bytes(PROBE) + counts.probation * record_bytes(PROBATION),
        "ev_clocks": counts.stays * record_bytes(SKIP_STAY) + counts.mark_runs * record_bytes(MARK_RUN),
        "work_queue": counts.work_requests * record_bytes(WORK_REQUEST),
    }


def on_chip_bytes(pieces: dict[str, int]) -> int:
    """Bytes of a QP's pieces that are on the chip."""
    return sum(pieces[name] for name in ON_CHIP)


def contexts_of(knobs: NicSettings, planes: int) -> int:
    """Congestion contexts of one destination."""
    return planes if knobs.congestion_scope == "plane" else 1


def peer_bytes(planes: int, contexts: int, ev_bits: int, questions: int) -> dict[str, int]:
    """Bytes by piece of one destination with so many congestion contexts and EV probes out."""
    return {
        "congestion": contexts * record_bytes(CONGESTION),
        # By plane: whether it is up at the peer, and for how many probes it was silent.
        "path_template": record_bytes(DESTINATION, planes * (1 + SILENCE_BITS)),
        "reverse_evs": (planes * ev_bits + 7) // 8,
        "ev_questions": questions * record_bytes(EV_QUESTION, ev_bits),
    }


def nic_bytes(regions: int, denials: int, values: Iterable[int] = ()) -> dict[str, int]:
    """Bytes by piece of a NIC beside its QPs and destinations; `values`: width of each EV of its profiles."""
    return {
        "memory_keys": regions * record_bytes(MEMORY_KEY),
        "deny_list": denials * record_bytes(DENIAL),
        "ev_profiles": sum(record_bytes(PROFILE_EV, width) for width in values),
    }


def slot_bytes(knobs: NicSettings, planes: int) -> int:
    """Bytes of on-chip memory for one QP: all its tables at their limits, unless a knob says otherwise."""
    return knobs.sram_qp_bytes or on_chip_bytes(qp_bytes(limits_of(knobs, planes), knobs.ev_bits))


def resident_max(knobs: NicSettings, planes: int) -> int | None:
    """QP contexts that fit on the chip, at least one; None when its memory is unlimited."""
    if not knobs.sram_bytes:
        return None
    return max(1, knobs.sram_bytes // slot_bytes(knobs, planes))
