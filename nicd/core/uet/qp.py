"""A UET endpoint with the face of a QP: its state, its peer, the context it opens, those that its peer has opened.

Owns the wiring of initiator, planes and targets, and the closing of contexts. `nicd.core.qp_state` has the states; a
UET endpoint has none, so RTR and RTS only say who may receive and who may send. UEC PDS (contexts, CLOSE).
"""

from typing import Final, Protocol

from mrcfabric.units import Instant
from mrcfabric.wire.uet_layout import (
    CONTROL_CLEAR,
    CONTROL_CLOSE,
    CONTROL_CREDIT_REQUEST,
    FLAG_AR,
    FLAG_RETX,
    FLAG_ROD,
    FLAG_SYN,
    PSN_MASK_UET,
)
from nicd.core.board import Board
from nicd.core.commands import ConnectQp, PostWrite
from nicd.core.events import STATUS_FLUSHED
from nicd.core.memory import Region
from nicd.core.qp_state import QpState
from nicd.core.queue_pair import QueuePair
from nicd.core.timers import Timer
from nicd.core.uet.contexts import Contexts
from nicd.core.uet.entropy import draws_of
from nicd.core.uet.initiator import Initiator
from nicd.core.uet.peer import Sharing, UetPeer
from nicd.core.uet.planes import Planes
from nicd.core.uet.refusals import Refusals
from nicd.core.uet.target import Target
from nicd.core.uet.uet_stats import UetStats

_UPPER_PSN: Final = 0xFF000000
_CLOSES_MAX: Final = 7
"""A CLOSE is sent again so often; the target forgets the context by itself when it needs the room."""


class Closing:
    """A context whose initiator is gone: it sends CLOSE until it is answered."""

    def __init__(
        self, board: Board, uet: UetStats, contexts: Contexts, peer: UetPeer, pdcid: int, dpdcid: int, psn: int,
        entropy: int, port: int,
    ) -> None:  # fmt: skip
        self._board = board
        self._uet = uet
        self._contexts = contexts
        self.peer = peer
        self.pdcid = pdcid
        self.initiates = True
        self._dpdcid = dpdcid
        self._psn = psn
        self._entropy = entropy
        self._port = port
        self._tries = 0
        self._timer = Timer(board.timers, self._send)

    def begin(self, now: Instant) -> None:
        """Send the first CLOSE."""
        self._send(now)

    def _send(self, now: Instant) -> None:
        if self._tries > _CLOSES_MAX:
            self.end()
            return
        settings = self._board.settings
        flags = FLAG_AR | (FLAG_RETX if self._tries else 0) | (FLAG_ROD if settings.uet_mode == "rod" else 0)
        packet = self.peer.template.control(
            self._entropy, CONTROL_CLOSE, flags, self._psn & PSN_MASK_UET, self.pdcid, self._dpdcid
        )
        self._uet.controls_sent += self.peer.send(now, self._port, packet)
        self._timer.set(now + (settings.rto_ns << self._tries))
        self._tries += 1

    def end(self) -> None:
        """The target has answered, or never will."""
        self._timer.cancel()
        self._contexts.leave(self.pdcid)
        self._uet.contexts_closed += 1


class Shared(Protocol):
    """What QPs share of their NIC."""

    uet: UetStats
    contexts: Contexts

    def forget_target(self, target: Target) -> None:
        """A target's context is gone."""
        ...


class UetLink(Sharing):
    """A connected QP: what the scheduler asks of it (`nicd.core.scheduler.Sender`), and its contexts."""

    __slots__ = (
        "_board", "_qp", "_shared", "initiates", "initiator", "pdcid", "peer", "peer_qpn",
        "placed_before", "planes", "refusals", "targets",
    )  # fmt: skip

    def __init__(self, qp: "UetQp", board: Board, shared: Shared, request: ConnectQp, peer: UetPeer) -> None:
        self._board = board
        self._qp = qp
        self._shared = shared
        self.qpn = qp.qpn
        self.peer = peer
        self.peer_index = request.peer_index
        self.peer_qpn = request.peer_qpn
        self.waiting = False
        self.pdcid = 0
        self.initiates = True
        config = board.config
        rng = draws_of(config, qp.qpn, request.peer_index, request.peer_qpn)
        self.planes = Planes(board, shared.uet, peer, rng, self.window_moved)
        # A controller gives a PSN of 24 bits. Those near a wrap of it are near one of 32, too.
        psn = _UPPER_PSN | request.psn_send
        self.initiator = Initiator(self, board, shared.uet, peer, self.planes, psn)
        self.placed_before = 0
        """Payload written through contexts that are closed."""
        self.refusals = Refusals(self, self.initiator, peer, self.planes, shared.uet)
        self.targets: dict[int, Target] = {}
        """PDCID of ours -> context that the peer opened to this QP."""
        peer.sharing.append(self)

    # -- what the scheduler and the peer ask

    def open_ports(self) -> int:
        """Bit p: a packet may leave by port p now."""
        planes = self.peer.windows.open & self.planes.usable(self._board.ports.carrier)
        return self.peer.ports.ports_of[planes]

    def has_packet(self) -> bool:
        return self.initiator.has_packet()

    def emit(self, now: Instant, ports: int) -> tuple[int, bytearray]:
        """The next packet, on the plane whose turn it is, for one of `ports`."""
        peer = self.peer
        mask = peer.ports.planes_of[ports] & peer.windows.open & self.planes.usable(self._board.ports.carrier)
        if self.initiator.table.lost:
            # What one plane has lost goes by another, or it might meet the same dead port each time.
            mask = mask & ~(1 << self.initiator.table.oldest_lost().plane) or mask
        plane = self.planes.take(mask)
        port = peer.ports.port[plane]
        return port, self.initiator.emit(now, plane, port)

    @property
    def waiting_bytes(self) -> int:
        """Payload that is still to be sent, or to be sent again."""
        return self.initiator.waiting_bytes

    @property
    def idle(self) -> bool:
        """Whether nothing is out and nothing waits."""
        return self.initiator.idle

    def credit_wanted(self) -> int | None:
        """Up to where credit is wanted, if packets wait for nothing else; None: they do not."""
        credit = self.peer.credit
        if credit is None or credit.open or not self.initiator.waiting_bytes:
            return None
        return self.peer.credit_target()

    def ask_credit(self, now: Instant) -> None:
        """Packets wait: if no packet can carry it, say by one of its own how much credit is wanted."""
        if self.peer.untold and self.initiator.waiting_bytes:
            self._shared.uet.credit_requests += 1
            psn = self.initiator.table.cack + 1 & PSN_MASK_UET
            self.control(now, CONTROL_CREDIT_REQUEST, psn, self.peer.credit_target(), 0)

    # -- contexts

    def begin(self) -> int:
        """Open a context, or open it anew under another PDCID."""
        if self.pdcid:
            self._shared.contexts.leave(self.pdcid)
        self._shared.uet.contexts_opened += 1
        return self._shared.contexts.enter(self)

    def close(self, now: Instant) -> None:
        """Give up the context that this QP opened; its target is told until it answers."""
        pdcid, self.pdcid = self.pdcid, 0
        if not pdcid:
            return
        initiator = self.initiator
        if not initiator.dpdcid:
            # Nobody has answered: there is nobody to tell.
            self._shared.contexts.leave(pdcid)
            return
        plane = self.planes.take(self.planes.usable(self._board.ports.carrier) or 1)
        closing = Closing(
            self._board, self._shared.uet, self._shared.contexts, self.peer, pdcid, initiator.dpdcid,
            initiator.psn_next, self.planes.any_entropy(now, plane), self.peer.ports.port[plane],
        )  # fmt: skip
        self._shared.contexts.replace(pdcid, closing)
        closing.begin(now)

    def asked_to_close(self, now: Instant) -> None:
        """The target wants its room back: close the context if nothing is out; the next packet opens another."""
        if self.initiator.idle and self.pdcid:
            self.close(now)
            self.initiator.renew()

    def asked_to_clear(self, now: Instant) -> None:
        """The target keeps many responses: if no request is to be sent that says it, say what is done with."""
        initiator = self.initiator
        if self.pdcid and initiator.dpdcid and not initiator.waiting_bytes:
            cack = initiator.table.cack
            self._shared.uet.clears_sent += 1
            self.control(now, CONTROL_CLEAR, cack + 1 & PSN_MASK_UET, cack & PSN_MASK_UET, 0)

    def control(self, now: Instant, kind: int, psn: int, payload: int, opaque: int) -> None:
        """Send a control packet on the context, by any plane."""
        usable = self.planes.usable(self._board.ports.carrier)
        if not usable:
            return
        plane = self.planes.take(usable)
        flags, third = (FLAG_ROD if self.initiator.ordered else 0), self.initiator.dpdcid
        if not third:
            flags |= FLAG_SYN
        packet = self.peer.template.control(
            self.planes.any_entropy(now, plane), kind, flags, psn, self.pdcid or self.begin(), third, payload, opaque
        )
        self._shared.uet.controls_sent += self.peer.send(now, self.peer.ports.port[plane], packet)

    # -- the QP

    def window_moved(self) -> None:
        """A packet may leave now that could not before, of this QP or of one that shares the window."""
        self.peer.wake()

    def fail(self, now: Instant, status: str, reason: str) -> None:
        """The QP goes to ERROR."""
        self._qp.fail(now, status, reason)

    @property
    def unfinished(self) -> int:
        return self.initiator.unfinished

    @property
    def untouched(self) -> bool:
        return not self.bytes_placed

    def take(self, now: Instant, work: PostWrite, region: Region, view: memoryview) -> None:
        self.initiator.post(now, work, region, view)

    def stop(self, now: Instant, status: str) -> None:
        """The QP has failed or is destroyed."""
        self._board.scheduler.forget(self)
        if self in self.peer.sharing:
            self.peer.sharing.remove(self)
        self.initiator.flush(now, status, STATUS_FLUSHED)
        self.planes.stop()
        self.close(now)
        for target in list(self.targets.values()):
            self._shared.forget_target(target)
        self.peer.wake()

    @property
    def bytes_placed(self) -> int:
        """Payload that has been written through this QP."""
        return self.placed_before + sum(target.bytes_placed for target in self.targets.values())

    def record(self) -> dict[str, int | str]:
        """The connected part of a row of the table of QPs."""
        initiator = self.initiator
        targets = self.targets.values()
        credit = self.peer.credit
        return {
            "peer_index": self.peer_index,
            "peer_qpn": self.peer_qpn,
            "unfinished": initiator.unfinished,
            "inflight_packets": len(initiator.table.by_psn),
            **self.peer.windows.record(),
            "psn_next": initiator.psn_next,
            "cack": initiator.table.cack,
            "pdcid": self.pdcid,
            "dpdcid": initiator.dpdcid,
            "targets": len(targets),
            "out_of_order": sum(target.early for target in targets),
            "bytes_placed": self.bytes_placed,
            "duplicates": sum(target.duplicates for target in targets),
            "planes": self.planes.usable(self._board.ports.carrier),
            "credit_bytes": 0 if credit is None else credit.left_bytes,
        }


class UetQp(QueuePair[UetLink]):
    """One QP."""

    __slots__ = ("_shared",)

    def __init__(self, board: Board, shared: Shared, qpn: int, now: Instant) -> None:
        super().__init__(board, qpn, now)
        self._shared = shared

    def connect(self, now: Instant, request: ConnectQp, peer: UetPeer) -> None:
        """Learn the peer, move to RTR: from now on this QP receives."""
        self.enter(now, QpState.RTR, "connected")
        self.link = UetLink(self, self._board, self._shared, request, peer)
