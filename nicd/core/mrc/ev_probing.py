"""EV probes for the controller: a batch of EVs of one QP probed at once, and the answers until the timeout.

Owns the batches and their rows. The peer sends the packets and numbers the requests; it uses the same probes to keep
the paths of acknowledgements fresh. `probe` brings EVs back, by reliability probes.

MRC 1.0 2.6 (endpoint operations), controller API: batch, timeout, and per answer request id, port, round trip and
whether the service time was taken off (it never is: a NIC answers at once).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mrcfabric.errors import RefusedError
from mrcfabric.units import NEVER, Instant
from nicd.core.commands_paths import ProbeEvs
from nicd.core.events import Result
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.path_control import link_of
from nicd.core.mrc.qp import Link, Qp
from nicd.core.timers import Timer

TIMEOUT_NS_MAX: Final = 1 << 40


class EvProbing:
    """All batches of one NIC."""

    __slots__ = ("_batches", "_board", "_number", "_open", "_qps", "_timer", "table")

    def __init__(self, board: MrcBoard, qps: Mapping[int, Qp]) -> None:
        self._board = board
        self._qps = qps
        self._number = 0
        self._batches: dict[int, list[dict[str, Any]]] = {}
        """Batch -> rows, the newest `ev_probe_batches_max` of them."""
        self._open: dict[int, Instant] = {}
        """Batch -> when it is over, of the batches that still wait."""
        self._timer = Timer(board.timers, self._due)
        self.table: dict[type, Callable[[Instant, Any], Result]] = {ProbeEvs: self._probe}
        """Command -> the method that carries it out."""

    def rows(self, batch: int) -> dict[str, Any]:
        """`done`, and a row per probe: ev, port, request, outcome (waiting, answered, lost, not_sent), answer_port,
        rtt_ns, service_time. Ports count from 1. RefusedError for a batch that is not kept."""
        if batch not in self._batches:
            raise RefusedError(f"no batch {batch} of EV probes")
        return {"batch": batch, "done": batch not in self._open, "rows": [dict(row) for row in self._batches[batch]]}

    def _probe(self, now: Instant, command: ProbeEvs) -> Result:
        link = link_of(self._qps, command.qpn)
        settings = self._board.settings
        timeout_ns = settings.ev_probe_timeout_ns if command.timeout_ns is None else command.timeout_ns
        if not 1 <= timeout_ns <= TIMEOUT_NS_MAX:
            raise RefusedError(f"a timeout of {timeout_ns} ns; possible are 1 to {TIMEOUT_NS_MAX}")
        indices = _indices(link, command.evs)
        if not 1 <= len(indices) <= settings.ev_probe_evs_max:
            raise RefusedError(f"{len(indices)} EVs in one batch; possible are 1 to {settings.ev_probe_evs_max}")
        self._number = batch = self._number + 1
        while len(self._batches) >= settings.ev_probe_batches_max:
            oldest = next(iter(self._batches))
            del self._batches[oldest]
            self._open.pop(oldest, None)
        self._batches[batch] = [self._ask(now, link, index) for index in indices]
        self._open[batch] = now + timeout_ns
        self._timer.set_by(now + timeout_ns)
        return {"batch": batch, "probes": len(indices), "until_ns": now + timeout_ns}

    def _ask(self, now: Instant, link: Link, index: int) -> dict[str, Any]:
        """Send one probe; returns its row."""
        profile = link.profile
        port = link.peer.ports.port[profile.plane[index]] + 1
        row: dict[str, Any] = {
            "ev": profile.evs[index], "port": port, "request": None, "outcome": "waiting",
            "answer_port": None, "rtt_ns": None, "service_time": False,
        }  # fmt: skip

        def answered(at_ns: Instant, port: int) -> None:
            if row["outcome"] == "waiting":
                row.update(outcome="answered", answer_port=port + 1, rtt_ns=at_ns - now)
                self._close()

        row["request"] = link.peer.ask_ev(now, profile.plane[index], profile.evs[index], profile.outer[index], answered)
        if row["request"] is None:
            row["outcome"] = "not_sent"
        return row

    def _close(self) -> None:
        """Close the batches in which no probe waits any more."""
        for batch in [number for number in self._open if not self._waiting(number)]:
            del self._open[batch]

    def _waiting(self, batch: int) -> bool:
        return any(row["outcome"] == "waiting" for row in self._batches[batch])

    def _due(self, now: Instant) -> None:
        for batch in [number for number, over_ns in self._open.items() if over_ns <= now]:
            del self._open[batch]
            for row in self._batches[batch]:
                if row["outcome"] == "waiting":
                    row["outcome"] = "lost"
        soonest = min(self._open.values(), default=NEVER)
        if soonest != NEVER:
            self._timer.set_by(soonest)


def _indices(link: Link, evs: Sequence[str] | None) -> list[int]:
    """Indices of EVs in the QP's profile. RefusedError."""
    if evs is None:
        return list(range(len(link.profile.evs)))
    found = []
    for text in evs:
        try:
            index = link.profile.index_of[int(text, 0)]
        except (ValueError, KeyError):
            raise RefusedError(f"EV {text!r} is not in the profile of QP {link.qpn}") from None
        found.append(index)
    return found
