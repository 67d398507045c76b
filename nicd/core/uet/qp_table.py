"""The QPs of a UET NIC and the peers they are connected to; carries out the commands about them.

Owns both tables and what a command may ask. `qp` does the rest. UEC SES (endpoints).
"""

from typing import Final

from mrcfabric.errors import RefusedError
from mrcfabric.units import Instant
from mrcfabric.wire.layout import QPN_MAX, QPN_MIN
from nicd.core.board import Board
from nicd.core.commands import ConnectQp, CreateQp, DestroyQp, ModifyQp, PostWrite
from nicd.core.events import STATUS_FLUSHED, Result
from nicd.core.qp_state import QpState
from nicd.core.transport import CarryOut
from nicd.core.uet.credits import Grantor
from nicd.core.uet.peer import UetPeer
from nicd.core.uet.qp import Shared, UetQp

_FIRST_QPN: Final = 16
"""The core chooses QP numbers from here on; scripts may use smaller ones."""
TIMEOUT_UNIT_NS: Final = 1_024
TIMEOUT_EXPONENT_MAX: Final = 24
LINEAR_MAX: Final = 7
EXPONENTIAL_MAX: Final = 25
PSN_GIVEN_MAX: Final = (1 << 24) - 1


class QpTable:
    """All QPs of one NIC."""

    def __init__(self, board: Board, shared: Shared, grantor: Grantor | None) -> None:
        self._board = board
        self._shared = shared
        self._grantor = grantor
        self._next_qpn = _FIRST_QPN
        self.qps: dict[int, UetQp] = {}
        self.peers: dict[int, UetPeer] = {}
        """By number of the NIC."""
        self.by_address: dict[bytes, UetPeer] = {}

    def commands(self) -> dict[type, CarryOut]:
        """Command -> the function that carries it out."""
        return {
            CreateQp: self._create_qp,
            ConnectQp: self._connect_qp,
            ModifyQp: self._modify_qp,
            DestroyQp: self._destroy_qp,
            PostWrite: self._post_write,
        }

    def _find(self, qpn: int) -> UetQp:
        qp = self.qps.get(qpn)
        if qp is None:
            raise RefusedError(f"no QP {qpn}")
        return qp

    def _create_qp(self, now: Instant, command: CreateQp) -> Result:
        limit = self._board.settings.qps_max
        if len(self.qps) >= limit:
            raise RefusedError(f"all {limit} QPs are in use")
        if command.profile:
            raise RefusedError(f"no EV profile {command.profile}: transport uet has no EVs")
        qpn = command.qpn
        if qpn is None:
            while self._next_qpn in self.qps:
                self._next_qpn = self._next_qpn + 1 if self._next_qpn < QPN_MAX else _FIRST_QPN
            qpn = self._next_qpn
            self._next_qpn = qpn + 1 if qpn < QPN_MAX else _FIRST_QPN
        elif not QPN_MIN <= qpn <= QPN_MAX:
            raise RefusedError(f"QP number {qpn}; possible are {QPN_MIN} to {QPN_MAX}")
        elif qpn in self.qps:
            raise RefusedError(f"QP {qpn} exists already")
        self.qps[qpn] = UetQp(self._board, self._shared, qpn, now)
        return {"qpn": qpn}

    def _connect_qp(self, now: Instant, command: ConnectQp) -> Result:
        qp = self._find(command.qpn)
        nics = self._board.config.paths.nics
        if not 0 <= command.peer_index < nics:
            raise RefusedError(f"no NIC {command.peer_index}; the fabric has {nics}")
        if not QPN_MIN <= command.peer_qpn <= QPN_MAX:
            raise RefusedError(f"peer QP number {command.peer_qpn}; possible are {QPN_MIN} to {QPN_MAX}")
        for psn in (command.psn_send, command.psn_receive):
            if not 0 <= psn <= PSN_GIVEN_MAX:
                raise RefusedError(f"{psn} is no PSN of 24 bits")
        if qp.state != QpState.INIT:
            raise RefusedError(f"QP {qp.qpn} is in state {qp.state.name.lower()}, not init")
        peer = self.peers.get(command.peer_index)
        if peer is None:
            peer = self.peers[command.peer_index] = UetPeer(self._board, command.peer_index, self._grantor)
            self.by_address[peer.address] = peer
        qp.connect(now, command, peer)
        return {"qpn": qp.qpn, "state": qp.state.name.lower()}

    def _modify_qp(self, now: Instant, command: ModifyQp) -> Result:
        qp = self._find(command.qpn)
        if command.state == "rts":
            timers = self._timers(command)
            qp.enter(now, QpState.RTS, "modified")
            assert qp.link is not None
            qp.link.initiator.silence.set_timers(*timers)
        elif command.state == "error":
            qp.fail(now, STATUS_FLUSHED, "modified")
        else:
            raise RefusedError(f"a QP is moved to rts or error, not to {command.state!r}")
        return {"qpn": qp.qpn, "state": qp.state.name.lower()}

    def _timers(self, command: ModifyQp) -> tuple[int, int, int]:
        """RTO and both counts of retries, as asked for or as the settings have them."""
        settings = self._board.settings
        exponent, linear, exponential = command.timeout_exponent, command.retry_linear, command.retry_exponential
        bounds = (
            ("a timeout of 1.024 us times 2 to", exponent, TIMEOUT_EXPONENT_MAX),
            ("linear retries:", linear, LINEAR_MAX), ("exponential retries:", exponential, EXPONENTIAL_MAX),
        )  # fmt: skip
        for what, value, most in bounds:
            if value is not None and not 0 <= value <= most:
                raise RefusedError(f"{what} {value}; possible are 0 to {most}")
        return (
            settings.rto_ns if exponent is None else TIMEOUT_UNIT_NS << exponent,
            settings.retry_linear if linear is None else linear,
            settings.retry_exponential if exponential is None else exponential,
        )

    def _destroy_qp(self, now: Instant, command: DestroyQp) -> Result:
        qp = self._find(command.qpn)
        qp.forget(now)
        del self.qps[qp.qpn]
        if self._board.contexts is not None:
            self._board.contexts.forget(qp.qpn)
        return {"qpn": qp.qpn}

    def _post_write(self, now: Instant, command: PostWrite) -> Result:
        self._find(command.qpn).post(now, command)
        return {"qpn": command.qpn, "wr_id": command.wr_id}
