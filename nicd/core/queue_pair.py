"""What queue pairs of all transports have in common: the life of a QP, and what it asks of its connected half.

Owns the changes of state, the check of a WRITE, and the end of a QP. `qp_state` has the table of states; each transport
has a `Connection` of its own with the parts that do the work.
MRC 1.0 section 3, IBTA 10.3.1: RESET -> INIT -> RTR -> RTS -> ERROR; RTR receives, RTS sends too.
"""

from typing import Final, Generic, TypeVar

from mrcfabric.errors import RefusedError
from mrcfabric.units import Instant
from nicd.core.board import Board
from nicd.core.commands import PostWrite
from nicd.core.events import STATUS_FLUSHED, QpChange
from nicd.core.memory import Region
from nicd.core.qp_state import NEXT_STATES, QpState
from nicd.core.scheduler import Sender
from nicd.core.timers import Timer

_MESSAGE_MAX: Final = (1 << 32) - 1


class Connection(Sender):
    """The connected half of a QP. A class, as `Sender`: compiled code calls it faster than a protocol."""

    __slots__ = ("peer_index",)

    peer_index: int
    """The NIC at the other end."""

    @property
    def unfinished(self) -> int:
        """Messages whose work requests are kept."""
        raise NotImplementedError

    @property
    def untouched(self) -> bool:
        """Whether nothing was received yet."""
        raise NotImplementedError

    def take(self, now: Instant, work: PostWrite, region: Region, view: memoryview) -> None:
        """Send this message; `view` is its bytes in `region`."""
        raise NotImplementedError

    def stop(self, now: Instant, status: str) -> None:
        """The QP has failed or is destroyed: the oldest message ends with `status`, the others are flushed."""
        raise NotImplementedError

    def record(self) -> dict[str, int | str]:
        """The connected part of a row of the table of QPs."""
        raise NotImplementedError


C = TypeVar("C", bound=Connection)


class QueuePair(Generic[C]):
    """One QP. `link` is None until it is connected."""

    __slots__ = ("_board", "_setup", "link", "qpn", "reason", "state")

    def __init__(self, board: Board, qpn: int, now: Instant) -> None:
        self._board = board
        self._setup = Timer(board.timers, self._setup_over)
        self.qpn = qpn
        self.state = QpState.RESET
        self.reason = ""
        """Why the last state was entered."""
        self.link: C | None = None
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
        link = self.link
        if link is None or self.state != QpState.RTS:
            raise RefusedError(f"QP {self.qpn} is in state {self.state.name.lower()}, not rts")
        # MRC 1.0 section 3: a message has 1 to 2**32 - 1 bytes.
        if not 0 < work.length <= _MESSAGE_MAX:
            raise RefusedError(f"a message of {work.length} bytes; possible are 1 to 2**32 - 1")
        if work.imm is not None and not 0 <= work.imm < 1 << 32:
            raise RefusedError(f"{work.imm} is no immediate of 32 bits")
        if not 0 <= work.r_key < 1 << 32 or not 0 <= work.remote_va <= (1 << 64) - work.length:
            raise RefusedError("R_Key or remote address out of range")
        limit = self._board.settings.work_requests_max
        if link.unfinished >= limit:
            raise RefusedError(f"QP {self.qpn} has {limit} unfinished messages")
        region = self._board.memory.find(work.local_region)
        link.take(now, work, region, region.read(work.local_va, work.length))

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
        if self.link is None or self.link.untouched:
            self.fail(now, STATUS_FLUSHED, f"setup_timeout_in_{self.state.name.lower()}")
