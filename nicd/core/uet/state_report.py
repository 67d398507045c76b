"""The state that a UET NIC really holds, counted in its live structures and put into bytes.

Owns the counting: what is held now, the most that each table has ever held, and what is reserved when every table is at
its limit. The report has the form of `nicd.core.mrc.state_report`; a UET NIC keeps nothing about destinations.
`nicd.core.uet.footprint` has widths and sums.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from mrcfabric.attributes import attribute_names
from nicd.core.board import Board
from nicd.core.process_size import reachable
from nicd.core.uet.footprint import UetCounts, limits_of, nic_bytes, on_chip_bytes, qp_bytes, slot_bytes
from nicd.core.uet.qp import UetLink, UetQp

Report: TypeAlias = dict[str, Any]


def held(link: UetLink) -> UetCounts:
    """How many of everything a connected QP holds now."""
    initiator, targets = link.initiator, link.targets.values()
    return UetCounts(
        len(initiator.table.by_psn),
        sum(target.early for target in targets),
        sum(len(target.messages) for target in targets),
        initiator.unfinished,
        sum(len(target.kept) for target in targets),
    )


def peak(link: UetLink) -> UetCounts:
    """The most of everything that it has held."""
    initiator, targets = link.initiator, link.targets.values()
    return UetCounts(
        initiator.table.peak,
        max((target.early_peak for target in targets), default=0),
        max((target.messages.peak for target in targets), default=0),
        initiator.unfinished_peak,
        max((target.kept.peak for target in targets), default=0),
    )


def state_report(board: Board, qps: Mapping[int, UetQp], shared: tuple[Any, ...]) -> Report:
    """Bytes of everything, by piece, per QP and summed up; the pieces are the tables of `footprint`.

    `shared`: what QPs refer to and no QP owns. The keys are those of `nicd.core.mrc.state_report`.
    """
    rows = [_qp_row(board, qp, qp.link, shared) for qp in qps.values() if qp.link is not None]
    own, most = nic_bytes(len(board.memory)), nic_bytes(board.settings.regions_max)
    total = {moment: sum(row[moment]["on_chip"] for row in rows) for moment in ("now", "peak", "reserved")}
    for moment in total:
        total[moment] += sum((most if moment == "reserved" else own).values())
    return {
        "qps": rows,
        "peers": [],
        "nic": {"now": own, "reserved": most},
        "total": {**total, "host_now": sum(row["now"]["pieces"]["work_queue"] for row in rows)},
        "chip": _chip(board, len(qps)),
        "process_bytes": sum(row["process"]["bytes"] for row in rows),
    }


def state_bytes(board: Board, qps: Mapping[int, UetQp]) -> dict[str, int]:
    """Bytes of all connected QPs on the chip, for metrics: `now` and at each one's `peak`."""
    links = [qp.link for qp in qps.values() if qp.link is not None]
    return {
        name: sum(on_chip_bytes(qp_bytes(board.settings, counts(link))) for link in links)
        for name, counts in (("now", held), ("peak", peak))
    }


def _qp_row(board: Board, qp: UetQp, link: UetLink, shared: tuple[Any, ...]) -> Report:
    others = (board, *(getattr(board, name) for name in attribute_names(Board)), *shared)
    process = reachable(qp, "nicd.core", others)
    contexts = board.contexts
    return {
        "qpn": link.qpn,
        "peer_index": link.peer_index,
        "resident": contexts is None or link.qpn in contexts.resident,
        "now": _sized(board, held(link)),
        "peak": _sized(board, peak(link)),
        "reserved": _sized(board, limits_of(board.settings)),
        "process": {"objects": process.objects, "bytes": process.size_bytes},
    }


def _sized(board: Board, counts: UetCounts) -> Report:
    pieces = qp_bytes(board.settings, counts)
    return {"on_chip": on_chip_bytes(pieces), "pieces": pieces}


def _chip(board: Board, qps: int) -> Report:
    settings = board.settings
    slot = slot_bytes(settings)
    if board.contexts is None:
        return {"sram_bytes": 0, "slot_bytes": slot, "resident": qps, "spilled": 0}
    return {"sram_bytes": settings.sram_bytes, "slot_bytes": slot, **board.contexts.counters(qps)}
