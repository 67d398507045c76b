"""The QPs and peers of an MRC NIC, and the commands that concern them.

Owns both tables. A command that cannot be carried out raises RefusedError and leaves nothing half done. `path_control`,
`profile_control` and `ev_probing` carry out what a controller asks of paths, EV profiles and EV probes.

MRC 1.0 section 3 (verbs).
"""

from collections.abc import Collection
from typing import Final

from mrcfabric.errors import RefusedError
from mrcfabric.rng import PPM
from mrcfabric.units import Instant
from mrcfabric.wire.layout import PSN_MASK, QPN_MAX, QPN_MIN
from nicd.core.commands import ConnectQp, CreateQp, DestroyQp, ModifyQp, PostWrite
from nicd.core.events import STATUS_FLUSHED, Result
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.limits import agree, hints_of, own_offer, peer_offer
from nicd.core.mrc.path_control import bar_as_told
from nicd.core.mrc.peer import Peer
from nicd.core.mrc.qp import Qp
from nicd.core.qp_state import QpState
from nicd.core.transport import CarryOut

_FIRST_QPN: Final = 16
"""The core chooses QP numbers from here on; scripts may use smaller ones."""


class QpTable:
    """All QPs of one NIC, and the NICs that they are connected to."""

    __slots__ = ("_board", "_by_address", "_next_qpn", "_restarted", "by_index", "commands", "qps")

    def __init__(self, board: MrcBoard, start_ns: Instant = 0) -> None:
        self._board = board
        self._restarted = start_ns > 0
        """Peers may remember an earlier life of this NIC."""
        self.qps: dict[int, Qp] = {}
        self.by_index: dict[int, Peer] = {}
        """NIC number -> the peer."""
        self._by_address: dict[bytes, Peer] = {}
        self._next_qpn = _FIRST_QPN
        self.commands: dict[type, CarryOut] = {
            CreateQp: self._create_qp,
            ConnectQp: self._connect_qp,
            ModifyQp: self._modify_qp,
            DestroyQp: self._destroy_qp,
            PostWrite: self._post_write,
        }

    @property
    def peers(self) -> Collection[Peer]:
        """The NICs that QPs are connected to."""
        return self.by_index.values()

    def peer_of(self, address: bytes) -> Peer | None:
        """The peer with this inner address, if a QP is connected to it."""
        return self._by_address.get(address)

    def windows(self) -> dict[str, int]:
        """The congestion windows towards all peers, each over its planes: their number, sums, and the smallest."""
        sizes = [peer.windows.cwnd_bytes for peer in self.by_index.values()]
        return {
            "count": len(sizes),
            "cwnd_bytes": sum(sizes),
            "cwnd_bytes_min": min(sizes, default=0),
            "inflight_bytes": sum(peer.windows.inflight_bytes for peer in self.by_index.values()),
        }

    def mpr(self) -> dict[str, int]:
        """PSNs that all QPs together may have and now have in flight, and the greatest share of one QP, in ppm."""
        granted = used = most = 0
        for qp in self.qps.values():
            if qp.link is not None and qp.state != QpState.ERROR:
                requestor = qp.link.requestor
                out = requestor.psn_next - requestor.cack - 1
                granted += requestor.mpr
                used += out
                most = max(most, out * PPM // requestor.mpr)
        return {"granted_packets": granted, "used_packets": used, "used_ppm_max": most}

    def peer_ports_down(self) -> list[int]:
        """By port number: how many peers have reported that port of theirs as down."""
        whole = (1 << self._board.ports.count) - 1
        down = [peer.up ^ whole for peer in self.by_index.values() if peer.up != whole]
        return [sum(bits >> port & 1 for bits in down) for port in range(self._board.ports.count)]

    def find(self, qpn: int) -> Qp:
        """The QP with this number. RefusedError when there is none."""
        qp = self.qps.get(qpn)
        if qp is None:
            raise RefusedError(f"no QP {qpn}")
        return qp

    # -- QPs

    def _create_qp(self, now: Instant, command: CreateQp) -> Result:
        limit = self._board.settings.qps_max
        if len(self.qps) >= limit:
            raise RefusedError(f"all {limit} QPs are in use")
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
        settings = self._board.settings
        hints = hints_of(command)
        offer = own_offer(settings, command, hints, self._board.bdp_bytes)
        profile = self._board.profiles.tie(command.profile)
        self.qps[qpn] = Qp(self._board, qpn, now, profile, offer, hints)
        return {"qpn": qpn, **offer.record()}

    def _connect_qp(self, now: Instant, command: ConnectQp) -> Result:
        qp = self.find(command.qpn)
        paths = self._board.config.paths
        if not 0 <= command.peer_index < paths.nics:
            raise RefusedError(f"no NIC {command.peer_index}; the fabric has {paths.nics}")
        if not QPN_MIN <= command.peer_qpn <= QPN_MAX:
            raise RefusedError(f"peer QP number {command.peer_qpn}; possible are {QPN_MIN} to {QPN_MAX}")
        for psn in (command.psn_send, command.psn_receive):
            if not 0 <= psn <= PSN_MASK:
                raise RefusedError(f"{psn} is no PSN of 24 bits")
        limits = agree(qp.offer, peer_offer(qp.offer, command))
        if qp.state != QpState.INIT:
            raise RefusedError(f"QP {qp.qpn} is in state {qp.state.name.lower()}, not init")
        peer = self.by_index.get(command.peer_index)
        news = self._board.ports.carrier != (1 << self._board.ports.count) - 1
        if peer is None:
            news |= self._restarted
            peer = Peer(self._board, command.peer_index, self._peer_ports)
            self.by_index[peer.index] = peer
            self._by_address[peer.address] = peer
        elif not any(other.state != QpState.ERROR for other in self._linked(peer)):
            peer.forget_ports()
        qp.connect(now, command, limits, peer)
        bar_as_told(now, qp, self._board)
        if news:
            peer.announce_ports(now)
        return {"qpn": qp.qpn, "state": qp.state.name.lower(), **limits.record()}

    def _modify_qp(self, now: Instant, command: ModifyQp) -> Result:
        qp = self.find(command.qpn)
        if command.state == "rts":
            qp.start(now, command)
        elif command.state == "error":
            qp.fail(now, STATUS_FLUSHED, "modified")
        else:
            raise RefusedError(f"a QP is moved to rts or error, not to {command.state!r}")
        return {"qpn": qp.qpn, "state": qp.state.name.lower()}

    def _destroy_qp(self, now: Instant, command: DestroyQp) -> Result:
        qp = self.find(command.qpn)
        link = qp.link
        qp.forget(now)
        del self.qps[qp.qpn]
        if self._board.contexts is not None:
            self._board.contexts.forget(qp.qpn)
        qp.profile.users -= 1
        if link is not None and not self._linked(link.peer):
            link.peer.stop()
            del self.by_index[link.peer.index]
            del self._by_address[link.peer.address]
        return {"qpn": qp.qpn}

    def _post_write(self, now: Instant, command: PostWrite) -> Result:
        self.find(command.qpn).post(now, command)
        return {"qpn": command.qpn, "wr_id": command.wr_id}

    # -- ports

    def carrier_changed(self, now: Instant, port: int) -> None:
        """A port of this NIC has lost or regained its carrier: tell QPs, and every peer."""
        for peer in self.by_index.values():
            self._planes_changed(now, peer, peer.ports.planes_of[1 << port])
            peer.announce_ports(now)

    def _linked(self, peer: Peer) -> list[Qp]:
        return [qp for qp in self.qps.values() if qp.link is not None and qp.link.peer is peer]

    def _peer_ports(self, now: Instant, peer: Peer, changed: int) -> None:
        self._planes_changed(now, peer, peer.ports.arriving(changed))

    def _planes_changed(self, now: Instant, peer: Peer, changed: int) -> None:
        """Planes in `changed` came up or went down at one end."""
        usable = peer.ports.alive(self._board.ports.carrier, peer.up)
        for qp in self._linked(peer):
            link = qp.link
            if link is None or qp.state not in (QpState.RTR, QpState.RTS):
                continue
            for plane in range(peer.destination.planes):
                if changed >> plane & 1 and not usable >> plane & 1:
                    link.plane_down(now, plane)
            if changed & usable:
                link.plane_up(now)
