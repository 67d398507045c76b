"""An RC queue pair: its state, its peer, its port, and the parts that do the work.

Owns the wiring of requestor, responder, pace and ways; `nicd.core.qp_state` has the states. IBTA 10.3.1 (states),
9.7 (reliable connections).
"""

from typing import Final

from mrcfabric.errors import RefusedError
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.dscp import CE
from nicd.core.board import Board
from nicd.core.commands import ConnectQp, PostWrite
from nicd.core.events import STATUS_FLUSHED, PathMigrated, QpChange
from nicd.core.qp_state import NEXT_STATES, QpState
from nicd.core.rc.dcqcn import Pace, ReactionPoint
from nicd.core.rc.dcqcn_profile import DcqcnFigures
from nicd.core.rc.lid_ways import LidWays
from nicd.core.rc.notification import NotificationPoint
from nicd.core.rc.out_of_order import OutOfOrderRequestor, OutOfOrderResponder
from nicd.core.rc.rc_stats import RcStats
from nicd.core.rc.requestor import Requestor
from nicd.core.rc.responder import Responder
from nicd.core.rc.selective import SelectiveRequestor, selective_window
from nicd.core.rc.selective_responder import SelectiveResponder
from nicd.core.rc.ways import NO_PORT, Ways
from nicd.core.scheduler import Sender
from nicd.core.timers import Timer

_MESSAGE_MAX: Final = (1 << 32) - 1
_HALVES: Final[dict[str, tuple[type[Requestor], type[Responder]]]] = {
    "selective": (SelectiveRequestor, SelectiveResponder),
    "out_of_order": (OutOfOrderRequestor, OutOfOrderResponder),
}
"""What sends and what receives, by `rc_recovery`; all others go back."""


class RcLink(Sender):
    """A connected QP: both halves, and what the scheduler asks of it (`nicd.core.scheduler.Sender`)."""

    __slots__ = (
        "_board", "_notification", "_qp", "_rc", "peer_index", "peer_qpn", "ports", "requestor", "responder", "ways",
        "windows",
    )  # fmt: skip

    def __init__(
        self, qp: "RcQp", board: Board, rc: RcStats, request: ConnectQp, figures: DcqcnFigures | None, port: int
    ) -> None:
        settings = board.settings
        self._board = board
        self._qp = qp
        self._rc = rc
        self.qpn = qp.qpn
        self.peer_index = request.peer_index
        self.peer_qpn = request.peer_qpn
        self.waiting = False
        ways = LidWays if settings.rc_path == "lid" else Ways
        self.ways: Ways | LidWays = ways(board, qp.qpn, request.peer_index, request.peer_qpn, max(port, 0))
        self.ports = 0 if port == NO_PORT else 1 << port
        """Bit p: port p can carry its data."""
        line_bps = board.config.ports[self.ways.port].rate_bps
        self.windows: Pace = Pace(line_bps)
        self._notification: NotificationPoint | None = None
        if figures is not None:
            self.windows = ReactionPoint(line_bps, figures, board.timers, rc, self.window_moved)
            self._notification = NotificationPoint(figures.cnp_ns)
        selective = settings.rc_recovery == "selective"
        window = settings.rc_window_bytes
        if selective and not window:
            window = selective_window(line_bps, settings.base_rtt_ns, settings.mtu_bytes, settings.rc_ack_every)
        send, receive = _HALVES.get(settings.rc_recovery, (Requestor, Responder))
        self.requestor = send(self, board, rc, self.ways.data(), self.windows, request.psn_send, window)
        self.responder = receive(self, board, rc, self.ways, request.psn_receive)

    def open_ports(self) -> int:
        """Its one port, if that has carrier and the rate allows a packet now; else 0."""
        return self.ports & self.windows.open

    def has_packet(self) -> bool:
        return self.requestor.has_packet()

    def emit(self, now: Instant, ports: int) -> tuple[int, bytearray]:
        """The next packet, and its port, which is the only bit of `ports`."""
        port = ports.bit_length() - 1
        return port, self.requestor.emit(now, port)

    def window_moved(self) -> None:
        """A packet may leave now that could not before."""
        self._board.scheduler.wake(self)

    def fail(self, now: Instant, status: str, reason: str) -> None:
        """The QP goes to ERROR."""
        self._qp.fail(now, status, reason)

    def migrate(self, now: Instant) -> bool:
        """Go on by the second path. False: there is none."""
        if not self.ways.migrate():
            return False
        self.ports = 1 << self.ways.port
        self.requestor.take_template(self.ways.data())
        self._board.tell(PathMigrated(now, self.qpn, self.ways.port, self.ways.sport))
        self.window_moved()
        return True

    def post(self, now: Instant, work: PostWrite) -> None:
        """Take a WRITE. RefusedError when it cannot be done."""
        if not 0 < work.length <= _MESSAGE_MAX:
            raise RefusedError(f"a message of {work.length} bytes; possible are 1 to 2**32 - 1")
        if work.imm is not None and not 0 <= work.imm < 1 << 32:
            raise RefusedError(f"{work.imm} is no immediate of 32 bits")
        if not 0 <= work.r_key < 1 << 32 or not 0 <= work.remote_va <= (1 << 64) - work.length:
            raise RefusedError("R_Key or remote address out of range")
        limit = self._board.settings.work_requests_max
        if self.requestor.unfinished >= limit:
            raise RefusedError(f"QP {self.qpn} has {limit} unfinished messages")
        region = self._board.memory.find(work.local_region)
        self.requestor.post(now, work, region, region.read(work.local_va, work.length))
        self._board.scheduler.wake(self)

    def on_data(
        self, now: Instant, port: int, packet: Buffer, traffic_class: int, opcode: int, psn: int, flags: int,
        start: int, size: int,
    ) -> str:  # fmt: skip
        """Take a data packet with a good ICRC; see `Responder.on_data`."""
        stats = self._board.stats
        stats.data_received += 1
        if traffic_class & CE == CE:
            stats.ecn_marks += 1
            notification = self._notification
            if notification is not None and notification.marked(now) and self.ways.notify(now, port):
                self._rc.cnps_sent += 1
        return self.responder.on_data(now, port, packet, opcode, psn, flags, start, size)

    def on_cnp(self, now: Instant) -> None:
        """Take a congestion notification."""
        self._rc.cnps_received += 1
        if not self.windows.on_cnp(now):
            self._rc.cnps_ignored += 1

    def carrier_changed(self, now: Instant, port: int) -> None:
        """`port` is the one to use now; NO_PORT: there is none."""
        self.ports = 0 if port == NO_PORT else 1 << port
        if port not in (NO_PORT, self.ways.port):
            self.ways.port = port
            self.requestor.take_template(self.ways.data())
            self.windows.moved(self._board.config.ports[port].rate_bps)
        self.window_moved()

    def stop(self, now: Instant, status: str) -> None:
        """The QP has failed or is destroyed."""
        self._board.scheduler.forget(self)
        self.windows.stop()
        self.responder.stop()
        self.requestor.flush(now, status, STATUS_FLUSHED)

    def record(self) -> dict[str, int | str]:
        """The connected part of a row of the table of QPs."""
        requestor, responder = self.requestor, self.responder
        return {
            "peer_index": self.peer_index,
            "peer_qpn": self.peer_qpn,
            "unfinished": requestor.unfinished,
            "inflight_packets": requestor.inflight_packets,
            "inflight_bytes": requestor.inflight_bytes,
            "cwnd_bytes": requestor.window_bytes,
            **self.windows.record(),
            "psn_next": requestor.psn_next,
            "cack": requestor.acknowledged - 1,
            "expected": responder.expected,
            "out_of_order": responder.early,
            "bytes_placed": responder.bytes_placed,
            "duplicates": responder.duplicates,
            "planes": self.ports,
            "port": self.ways.port,
            "sport": self.ways.sport,
        }


class RcQp:
    """One QP. `link` is None until it is connected."""

    __slots__ = ("_board", "_setup", "link", "qpn", "reason", "state")

    def __init__(self, board: Board, qpn: int, now: Instant) -> None:
        self._board = board
        self._setup = Timer(board.timers, self._setup_over)
        self.qpn = qpn
        self.state = QpState.RESET
        self.reason = ""
        """Why the last state was entered."""
        self.link: RcLink | None = None
        self.enter(now, QpState.INIT, "created")

    def enter(self, now: Instant, state: QpState, reason: str) -> None:
        """Change state. RefusedError when the table does not allow it."""
        before = self.state.name.lower()
        if state not in NEXT_STATES[self.state]:
            raise RefusedError(f"QP {self.qpn} cannot go from {before} to {state.name.lower()}")
        self._board.tell(QpChange(now, self.qpn, before, state.name.lower(), reason))
        self.state = state
        self.reason = reason
        limit_ns = self._board.settings.setup_timeout_ns
        if limit_ns and state < QpState.RTS:
            self._setup.set(now + limit_ns)
        else:
            self._setup.cancel()

    def post(self, now: Instant, work: PostWrite) -> None:
        """Take a WRITE. RefusedError when it cannot be done."""
        if self.link is None or self.state != QpState.RTS:
            raise RefusedError(f"QP {self.qpn} is in state {self.state.name.lower()}, not rts")
        self.link.post(now, work)

    def fail(self, now: Instant, status: str, reason: str) -> None:
        """Go to ERROR: the oldest message ends with `status`, the others are flushed."""
        if self.state == QpState.ERROR:
            return
        self.enter(now, QpState.ERROR, reason)
        if self.link is None:
            return
        self._board.stats.qp_errors += 1
        if self._board.host is not None:
            self._board.host.qp_failed(now, self.qpn, reason)
        self.link.stop(now, status)

    def forget(self, now: Instant) -> None:
        """The QP is destroyed."""
        self._setup.cancel()
        if self.link is not None:
            self.link.stop(now, STATUS_FLUSHED)

    def record(self) -> dict[str, int | str]:
        """One row of the table of QPs."""
        row: dict[str, int | str] = {"qpn": self.qpn, "state": self.state.name.lower(), "reason": self.reason}
        if self.link is not None:
            row |= self.link.record()
        return row

    def _setup_over(self, now: Instant) -> None:
        # A QP that only receives need not be RTS.
        if self.link is None or self.link.responder.untouched:
            self.fail(now, STATUS_FLUSHED, f"setup_timeout_in_{self.state.name.lower()}")
