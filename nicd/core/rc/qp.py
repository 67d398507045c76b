"""An RC queue pair: its state, its peer, its port, and the parts that do the work.

Owns the wiring of requestor, responder, pace and ways; `nicd.core.qp_state` has the states. IBTA 10.3.1 (states),
9.7 (reliable connections).
"""

from typing import Final

from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.dscp import CE
from nicd.core.board import Board
from nicd.core.commands import ConnectQp, PostWrite
from nicd.core.events import STATUS_FLUSHED, PathMigrated
from nicd.core.memory import Region
from nicd.core.queue_pair import Connection, QueuePair
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

_HALVES: Final[dict[str, tuple[type[Requestor], type[Responder]]]] = {
    "selective": (SelectiveRequestor, SelectiveResponder),
    "out_of_order": (OutOfOrderRequestor, OutOfOrderResponder),
}
"""What sends and what receives, by `rc_recovery`; all others go back."""


class RcLink(Connection):
    """A connected QP: both halves, and what the scheduler asks of it (`nicd.core.scheduler.Sender`)."""

    __slots__ = (
        "_board", "_notification", "_qp", "_rc", "peer_qpn", "ports", "requestor", "responder", "ways",
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

    @property
    def unfinished(self) -> int:
        return self.requestor.unfinished

    @property
    def untouched(self) -> bool:
        return self.responder.untouched

    def take(self, now: Instant, work: PostWrite, region: Region, view: memoryview) -> None:
        self.requestor.post(now, work, region, view)
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


class RcQp(QueuePair[RcLink]):
    """One QP."""

    __slots__ = ()
