"""The state that a NIC really holds, counted in its live structures and put into bytes.

Owns the counting: what is held now, the most that each table has ever held, and what is reserved when every table is at
its limit, by QP, by destination and for the NIC. `footprint` has widths and sums. `process_size` measures the same
state as CPython objects, which a report shows beside it, never mixed with it. A report walks every QP: it is for people
and studies, not for the packet path. MRC 1.0 section 3.
"""

from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeAlias

from mrcfabric.attributes import attribute_names
from nicd.core.ev_state import EvState
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.ev_format import BITS
from nicd.core.mrc.ev_universe import AUTO
from nicd.core.mrc.footprint import (
    EV_INDEX_BITS,
    QpCounts,
    limits_of,
    message_records,
    nic_bytes,
    on_chip_bytes,
    peak_of,
    peer_bytes,
    qp_bytes,
    slot_bytes,
)
from nicd.core.mrc.peer import Peer
from nicd.core.mrc.qp import Link, Qp
from nicd.core.process_size import reachable
from nicd.core.settings import MPR_UNIT

Report: TypeAlias = dict[str, Any]


def held(link: Link) -> QpCounts:
    """How many of everything a connected QP holds now."""
    requestor, responder, prober = link.requestor, link.responder, link.prober
    return QpCounts(
        evs=len(link.profile.evs),
        planes=len(link.profile.decks),
        bitmap_bits=responder.window.span,
        inflight=requestor.inflight_packets,
        messages=responder.messages.records,
        stash=responder.messages.stashed,
        probes=prober.asked,
        probation=prober.watched,
        work_requests=requestor.posted,
        stays=link.profile.states.count(EvState.SKIP),
        mark_runs=len(responder.marks.runs),
    )


def peak(link: Link) -> QpCounts:
    """The most of everything that it has held; of what options keep (`ev_clocks`) what it holds now."""
    requestor, responder, prober = link.requestor, link.responder, link.prober
    most = QpCounts(
        evs=0,
        planes=0,
        bitmap_bits=responder.window.span_peak,
        inflight=requestor.inflight_peak,
        messages=responder.messages.records_peak,
        stash=responder.messages.stashed_peak,
        probes=prober.asked_peak,
        probation=prober.watched_peak,
        work_requests=requestor.posted_peak,
    )
    return peak_of(most, held(link))


def reserved(board: MrcBoard, link: Link) -> QpCounts:
    """The most of everything that it may hold, by the limits both ends agreed on."""
    counts = limits_of(board.settings, board.ports.count)
    psns = link.limits.receive_mpr * MPR_UNIT
    counts.evs = counts.probation = len(link.profile.evs)
    counts.bitmap_bits = min(counts.bitmap_bits, psns)
    counts.inflight = link.limits.send_mpr * MPR_UNIT
    counts.messages = message_records(board.settings, psns)
    counts.stash = link.limits.receive_wimm + 1
    counts.work_requests = board.settings.work_requests_max + counts.inflight
    return counts


def state_report(board: MrcBoard, qps: Mapping[int, Qp], peers: Collection[Peer]) -> Report:
    """Bytes of everything, by piece, per QP and summed up; the pieces are the tables of `footprint`.

    `qps`: one row per connected QP with `now`, `peak`, `reserved` (pieces and their sum) and `process`. `peers`: one
    row per destination. `nic`: memory keys and the deny list. `total`: sums of `now`, `peak` and `reserved` on the
    chip, and what the host holds now. `chip`: the model of on-chip memory.
    """
    rows = [_qp_row(board, qp, qp.link) for qp in qps.values() if qp.link is not None]
    peer_rows = [_peer_row(board, peer) for peer in peers]
    profiles = [profile.universe for profile in board.profiles.by_number.values()]
    values = [BITS[one.kind] for one in profiles for _ in one.items]
    own = nic_bytes(len(board.memory), len(board.denied), values)
    most = nic_bytes(board.settings.regions_max, board.settings.deny_entries_max, values)
    shared = sum(row["bytes"] for row in peer_rows)
    total = {moment: sum(row[moment]["on_chip"] for row in rows) + shared for moment in ("now", "peak", "reserved")}
    for moment in total:
        total[moment] += sum((most if moment == "reserved" else own).values())
    return {
        "qps": rows,
        "peers": peer_rows,
        "nic": {"now": own, "reserved": most},
        "total": {**total, "host_now": sum(row["now"]["pieces"]["work_queue"] for row in rows)},
        "chip": _chip(board, len(qps)),
        "process_bytes": sum(row["process"]["bytes"] for row in rows),
    }


def state_bytes(board: MrcBoard, qps: Mapping[int, Qp]) -> dict[str, int]:
    """Bytes of all connected QPs on the chip, for metrics: `now` and at each one's `peak`; without what they share.

    The sums of what `state_report` says of each, without making a report of each.
    """
    now, most = (QpCounts(*[0] * len(fields(QpCounts))) for _ in range(2))
    fixed = 0
    for qp in qps.values():
        link = qp.link
        if link is None:
            continue
        fixed += _fixed_bytes(len(link.profile.evs), len(link.profile.decks), _ev_bits(board, qp))
        requestor, responder, prober = link.requestor, link.responder, link.prober
        messages, window = responder.messages, responder.window
        now.bitmap_bits += window.span + 7 & ~7
        most.bitmap_bits += window.span_peak + 7 & ~7
        now.inflight += requestor.inflight_packets
        most.inflight += requestor.inflight_peak
        now.messages += messages.records
        most.messages += messages.records_peak
        now.stash += messages.stashed
        most.stash += messages.stashed_peak
        now.probes += prober.asked
        most.probes += prober.asked_peak
        now.probation += prober.watched
        most.probation += prober.watched_peak
        now.mark_runs += len(responder.marks.runs)
    # Of the EVs of all connected QPs, which the board counts as they change.
    now.stays = sum([row[EvState.SKIP] for row in board.ev_tally])
    most.stays, most.mark_runs = now.stays, now.mark_runs
    none = _fixed_bytes(0, 0, 0)
    return {
        name: fixed - none + on_chip_bytes(qp_bytes(counts, ev_bits=0))
        for name, counts in (("now", now), ("peak", most))
    }


@cache
def _fixed_bytes(evs: int, planes: int, ev_bits: int) -> int:
    """What a QP takes on the chip while it holds nothing; the other pieces are in proportion to what it holds."""
    nothing = [0] * (len(fields(QpCounts)) - 2)
    return on_chip_bytes(qp_bytes(QpCounts(evs, planes, *nothing), ev_bits))


def _qp_row(board: MrcBoard, qp: Qp, link: Link) -> Report:
    # What the QP shares with others is theirs: the board and its parts, the destination, the profile it was drawn from.
    parts = (getattr(board, name) for name in attribute_names(MrcBoard))
    others = (board, *parts, link.peer, link.peer.windows, qp.profile)
    process = reachable(qp, "nicd.core", others)
    contexts = board.contexts
    ev_bits = _ev_bits(board, qp)
    return {
        "qpn": link.qpn,
        "peer_index": link.peer.index,
        "resident": contexts is None or link.qpn in contexts.resident,
        "now": _sized(held(link), ev_bits),
        "peak": _sized(peak(link), ev_bits),
        "reserved": _sized(reserved(board, link), ev_bits),
        "process": {"objects": process.objects, "bytes": process.size_bytes},
    }


def _ev_bits(board: MrcBoard, qp: Qp) -> int:
    """What a QP keeps of each EV: the value it drew, or its number in the profile that all its QPs share."""
    return board.settings.ev_bits if qp.profile.universe.mode == AUTO else EV_INDEX_BITS


def _sized(counts: QpCounts, ev_bits: int) -> Report:
    pieces = qp_bytes(counts, ev_bits)
    return {"on_chip": on_chip_bytes(pieces), "pieces": pieces}


def _peer_row(board: MrcBoard, peer: Peer) -> Report:
    pieces = peer_bytes(board.ports.count, len(peer.windows.contexts), board.settings.ev_bits, peer.questions)
    return {"peer_index": peer.index, "bytes": sum(pieces.values()), "pieces": pieces}


def _chip(board: MrcBoard, qps: int) -> Report:
    settings = board.settings
    slot = slot_bytes(settings, board.ports.count)
    if board.contexts is None:
        return {"sram_bytes": 0, "slot_bytes": slot, "resident": qps, "spilled": 0}
    return {"sram_bytes": settings.sram_bytes, "slot_bytes": slot, **board.contexts.counters(qps)}
