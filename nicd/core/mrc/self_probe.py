"""Self probes: packets that a NIC addresses to itself, round its T0 or a T1, to learn which links around it work.

Owns when each way is tried, which probes are out, and the counts per way. `mrcfabric.turns` lists the ways; the
orchestrator judges links by the counts of all NICs (`clustermapper`). No peer and no QP takes part: switches forward
the packet like any other, and only its sender looks at it.

The packet inside is ours to choose. It is a WRITE Only from the NIC to itself on the endpoint-operation QP, which no
peer may send there, in the trimmable data class: it meets the data queue like the data it stands for, and where the
queue is full it comes home trimmed, so that a busy link is not taken for a lossy one. The PSN counts the probes, MSN
is the number of the way (its low bits for a loop), VA the instant of sending; payload is zero bytes.

arXiv 2605.04333 8; MRC 1.0 7.5 (format).
"""

from collections import deque
from typing import Any, Final

from mrcfabric.errors import RefusedError
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.dscp import CE
from mrcfabric.wire.fastpath import read_data
from mrcfabric.wire.layout import ENDPOINT_QP, PSN_MASK, WRITE_ONLY
from mrcfabric.wire.templates import DataTemplate
from nicd.core.mrc.board import MrcBoard
from nicd.core.settings import TurnsLike
from nicd.core.timers import Timer

COUNTS: Final = ("sent", "back", "lost", "late", "marked", "trimmed", "skipped")
"""Probes counted per way, in the order of a row: sent; back in time; not back in time; of these, back later; back with
a mark; back trimmed; not sent, because the port had no carrier or no room."""
_SENT, _BACK, _LOST, _LATE, _MARKED, _TRIMMED, _SKIPPED = range(len(COUNTS))
LOOPS_MAX: Final = 64
"""Most loops whose counts are kept; beyond it the oldest is forgotten."""
_WAY_MASK: Final = 0xFFFF


class _Way:
    """The counts of one way."""

    __slots__ = ("counts", "rtt_max_ns", "rtt_min_ns", "rtt_sum_ns", "silent")

    def __init__(self) -> None:
        self.counts = [0] * len(COUNTS)
        self.silent = 0
        """Probes lost since the last that came back."""
        self.rtt_sum_ns = 0
        self.rtt_min_ns = 0
        self.rtt_max_ns = 0

    def returned(self, rtt_ns: int) -> None:
        self.silent = 0
        self.rtt_sum_ns += rtt_ns
        self.rtt_max_ns = max(self.rtt_max_ns, rtt_ns)
        self.rtt_min_ns = min(self.rtt_min_ns or rtt_ns, rtt_ns)


class SelfProber:
    """All self probes of one NIC."""

    __slots__ = (
        "_board", "_gap_ns", "_loop_timer", "_loops", "_out", "_overdue", "_payload", "_period_ns", "_phase_ns",
        "_planes", "_psn", "_round", "_round_ns", "_rounds_left", "_slot", "_start_ns", "_template", "_timeout",
        "_timer", "_todo", "_turns", "_ways",
    )  # fmt: skip

    def __init__(self, board: MrcBoard, turns: TurnsLike, start_ns: Instant) -> None:
        """`turns`: the ways back to this NIC."""
        config, settings = board.config, board.settings
        assert turns.ways <= _WAY_MASK + 1, "MSN names a way"
        self._board = board
        self._start_ns = start_ns
        self._turns = turns
        # MRC 1.0: trimmable data; a mark or a trim comes home and is not taken for a loss.
        self._template = DataTemplate(
            config.address, config.address, ENDPOINT_QP, dscp=config.dscp, options=config.options
        )
        self._payload = bytes(settings.self_probe_bytes or settings.mtu_bytes)
        self._ways: dict[int, _Way] = {}
        self._planes = [[0] * len(COUNTS) for _ in range(turns.planes)]
        self._out: dict[int, tuple[int, Instant]] = {}
        """PSN -> (way, when sent) of the probes that are still waited for, oldest first."""
        self._overdue: dict[int, tuple[int, Instant]] = {}
        """The same of the latest probes that were given up."""
        self._psn = 0
        self._period_ns = 0
        self._phase_ns = 0
        self._rounds_left: int | None = None
        self._round = 0
        self._round_ns: Instant = 0
        self._todo: list[int] = []
        self._slot = 0
        self._timer = Timer(board.timers, self._due)
        self._timeout = Timer(board.timers, self._give_up)
        self._gap_ns = 0
        self._loops: deque[list[int]] = deque()
        """[way, probes left] of the loops that are being tried, next first."""
        self._loop_timer = Timer(board.timers, self._loop_due)
        if settings.self_probe_period_ns:
            self.probe(start_ns, settings.self_probe_period_ns, None)

    def probe(self, now: Instant, period_ns: int, rounds: int | None) -> None:
        """From now on one round per `period_ns`, `rounds` of them (None: until told otherwise); period 0 stops.

        Rounds of all NICs with the same period have the same numbers at the same time, but begin at instants of
        their own: no two NICs probe in step.
        """
        self._timer.cancel()
        self._period_ns = period_ns
        self._rounds_left = rounds
        if not period_ns:
            return
        config = self._board.config
        self._phase_ns = Rng(config.seed, config.name, "self_probe").below(period_ns)
        self._begin((now - self._phase_ns) // period_ns + 1)

    def probe_loop(
        self, now: Instant, plane: int, t1_out: int, t0: int, t1_home: int, probes: int, gap_ns: int
    ) -> None:
        """Send so many probes round a loop, one per `gap_ns` in turn with other loops; it counts from zero.

        RefusedError when the loop is being tried already, or too many are.
        """
        way = self._turns.loop_number(plane, t1_out, t0, t1_home)
        if len(self._loops) >= LOOPS_MAX:
            raise RefusedError(f"{LOOPS_MAX} loops are being tried")
        if any(way == other for other, _ in self._loops):
            raise RefusedError("this loop is being tried")
        kept = [number for number in self._ways if number >= self._turns.ways]
        self._ways.pop(way, None)
        if len(kept) >= LOOPS_MAX:
            del self._ways[next(number for number in kept if all(number != other for other, _ in self._loops))]
        self._ways[way] = _Way()
        self._gap_ns = gap_ns
        self._loops.append([way, probes])
        self._loop_timer.set_by(now + gap_ns)

    def on_return(self, now: Instant, port: int, traffic_class: int, psn: int, packet: Buffer, trimmed: bool) -> bool:
        """A packet from this NIC to itself is back; False when no such probe was sent or is remembered."""
        known = self._out.get(psn)
        overdue = known is None
        if known is None:
            known = self._overdue.get(psn)
        _, msn, sent_ns, _, _ = read_data(packet)
        if known is None or (known[0] & _WAY_MASK, known[1]) != (msn, sent_ns) or self._turns.plane(known[0]) != port:
            return False
        if overdue:
            del self._overdue[psn]
            self._count(known[0], _LATE)
            return True
        del self._out[psn]
        self._count(known[0], _BACK)
        if trimmed:
            self._count(known[0], _TRIMMED)
        if traffic_class & CE == CE:
            self._count(known[0], _MARKED)
        way = self._ways.get(known[0])
        if way is not None:
            way.returned(now - sent_ns)
        return True

    def table(self) -> dict[str, Any]:
        """All counts since `start_ns`, when this NIC began.

        `columns`, and `rows` of plane, T1 (None: round the T0), COUNTS, and round trips in ns. `loops` are rows of
        plane, T1 out, T0, T1 home, COUNTS since they were asked for; `loops_left` those not yet through.
        `waiting` are the probes under way, `rounds_left` None without end; `silent` of a row are the probes lost
        since the last that came back.
        """
        columns = ["plane", "t1", *COUNTS, "silent", "rtt_sum_ns", "rtt_min_ns", "rtt_max_ns"]
        rows = [
            [
                self._turns.plane(number), self._turns.t1(number), *way.counts, way.silent,
                way.rtt_sum_ns, way.rtt_min_ns, way.rtt_max_ns,
            ]
            for number, way in sorted(self._ways.items())
            if number < self._turns.ways
        ]  # fmt: skip
        loops = [
            [*loop, *way.counts] for number, way in self._ways.items() if (loop := self._turns.loop(number)) is not None
        ]
        return {
            "columns": columns,
            "rows": rows,
            "start_ns": self._start_ns,
            "carrier": self._board.ports.carrier,
            "period_ns": self._period_ns,
            "rounds_left": self._rounds_left,
            "waiting": len(self._out),
            "loops": loops,
            "loops_left": len(self._loops),
        }

    def counters(self) -> dict[str, dict[str, int]]:
        """COUNTS per plane."""
        return {str(plane): dict(zip(COUNTS, counts, strict=True)) for plane, counts in enumerate(self._planes)}

    # -- sending

    def _begin(self, number: int) -> None:
        """Round `number` is the next: spread its ways evenly over its time."""
        self._round = number
        self._round_ns = number * self._period_ns + self._phase_ns
        self._todo = self._turns.of_round(number, self._board.settings.self_probe_testers)
        self._slot = 0
        self._timer.set(self._round_ns)

    def _due(self, now: Instant) -> None:
        self._send(now, self._todo[self._slot])
        self._slot += 1
        if self._slot < len(self._todo):
            self._timer.set(self._round_ns + self._slot * self._period_ns // len(self._todo))
            return
        if self._rounds_left is not None:
            self._rounds_left -= 1
            if self._rounds_left <= 0:
                self._period_ns = 0
                return
        self._begin(self._round + 1)

    def _loop_due(self, now: Instant) -> None:
        loop = self._loops.popleft()
        self._send(now, loop[0])
        loop[1] -= 1
        if loop[1] > 0:
            self._loops.append(loop)
        if self._loops:
            self._loop_timer.set(now + self._gap_ns)

    def _send(self, now: Instant, number: int) -> None:
        ports = self._board.ports
        settings = self._board.settings
        plane = self._turns.plane(number)
        if number not in self._ways:
            self._ways[number] = _Way()
        if not ports.carrier >> plane & 1 or len(self._out) >= settings.self_probes_outstanding_max:
            self._count(number, _SKIPPED)
            return
        psn = self._psn
        self._psn = (psn + 1) & PSN_MASK
        packet = self._template.build(
            WRITE_ONLY, psn, number & _WAY_MASK, 0, now, 0, len(self._payload), self._turns.ev(number),
            self._turns.outer(number), self._payload,
        )  # fmt: skip
        self._out[psn] = (number, now)
        self._count(number, _SENT)
        ports.offer_probe(now, plane, packet)
        if self._timeout.at_ns == NEVER:
            self._timeout.set(now + settings.self_probe_timeout_ns)

    def _give_up(self, now: Instant) -> None:
        settings = self._board.settings
        out = self._out
        while out:
            psn, known = next(iter(out.items()))
            deadline_ns = known[1] + settings.self_probe_timeout_ns
            if deadline_ns > now:
                self._timeout.set(deadline_ns)
                return
            del out[psn]
            self._overdue[psn] = known
            if len(self._overdue) > settings.self_probes_outstanding_max:
                del self._overdue[next(iter(self._overdue))]
            way = self._ways.get(known[0])
            if way is not None:
                way.silent += 1
            self._count(known[0], _LOST)

    def _count(self, number: int, what: int) -> None:
        way = self._ways.get(number)
        if way is not None:
            way.counts[what] += 1
        self._planes[self._turns.plane(number)][what] += 1
