"""The state that the QPs of a NIC really hold, counted in live structures and put into bytes.

Owns the report of a transport that keeps nothing about destinations; it has the form of `nicd.core.mrc.state_report`.
The transport gives an `Account`: what is held now, the most that each table has ever held, and the widths and sums of
its `footprint`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from mrcfabric.attributes import attribute_names
from nicd.core.board import Board
from nicd.core.process_size import reachable
from nicd.core.queue_pair import Connection, QueuePair
from nicd.core.settings import NicSettings

Report: TypeAlias = dict[str, Any]
C = TypeVar("C", bound=Connection)
N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class Account(Generic[C, N]):
    """How a transport counts; N: the numbers of entries of each table."""

    held: Callable[[C], N]
    """How many of everything a connected QP holds now."""
    peak: Callable[[C], N]
    """The most of everything that it has held."""
    limits: Callable[[NicSettings], N]
    """What is reserved when every table is at its limit."""
    qp_bytes: Callable[[NicSettings, N], dict[str, int]]
    """Bytes by piece of one QP."""
    on_chip_bytes: Callable[[dict[str, int]], int]
    """Bytes of those pieces that are on the chip."""
    nic_bytes: Callable[[int], dict[str, int]]
    """Bytes by piece of a NIC beside its QPs, by its number of memory regions."""
    slot_bytes: Callable[[NicSettings], int]
    """Bytes of on-chip memory for one QP."""

    def report(self, board: Board, qps: Mapping[int, QueuePair[C]], shared: tuple[Any, ...]) -> Report:
        """Bytes of everything, by piece, per QP and summed up; the pieces are the tables of `footprint`.

        `shared`: what QPs refer to and no QP owns.
        """
        rows = [self._qp_row(board, qp, qp.link, shared) for qp in qps.values() if qp.link is not None]
        own, most = self.nic_bytes(len(board.memory)), self.nic_bytes(board.settings.regions_max)
        total = {moment: sum(row[moment]["on_chip"] for row in rows) for moment in ("now", "peak", "reserved")}
        for moment in total:
            total[moment] += sum((most if moment == "reserved" else own).values())
        return {
            "qps": rows,
            "peers": [],
            "nic": {"now": own, "reserved": most},
            "total": {**total, "host_now": sum(row["now"]["pieces"]["work_queue"] for row in rows)},
            "chip": self._chip(board, len(qps)),
            "process_bytes": sum(row["process"]["bytes"] for row in rows),
        }

    def totals(self, board: Board, qps: Mapping[int, QueuePair[C]]) -> dict[str, int]:
        """Bytes of all connected QPs on the chip, for metrics: `now` and at each one's `peak`."""
        links = [qp.link for qp in qps.values() if qp.link is not None]
        return {
            name: sum(self.on_chip_bytes(self.qp_bytes(board.settings, counts(link))) for link in links)
            for name, counts in (("now", self.held), ("peak", self.peak))
        }

    def _qp_row(self, board: Board, qp: QueuePair[C], link: C, shared: tuple[Any, ...]) -> Report:
        others = (board, *(getattr(board, name) for name in attribute_names(Board)), *shared)
        process = reachable(qp, "nicd.core", others)
        contexts = board.contexts
        return {
            "qpn": link.qpn,
            "peer_index": link.peer_index,
            "resident": contexts is None or link.qpn in contexts.resident,
            "now": self._sized(board, self.held(link)),
            "peak": self._sized(board, self.peak(link)),
            "reserved": self._sized(board, self.limits(board.settings)),
            "process": {"objects": process.objects, "bytes": process.size_bytes},
        }

    def _sized(self, board: Board, counts: N) -> Report:
        pieces = self.qp_bytes(board.settings, counts)
        return {"on_chip": self.on_chip_bytes(pieces), "pieces": pieces}

    def _chip(self, board: Board, qps: int) -> Report:
        settings = board.settings
        slot = self.slot_bytes(settings)
        if board.contexts is None:
            return {"sram_bytes": 0, "slot_bytes": slot, "resident": qps, "spilled": 0}
        return {"sram_bytes": settings.sram_bytes, "slot_bytes": slot, **board.contexts.counters(qps)}
