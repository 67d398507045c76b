"""The RC transport: hands each received packet to the QP it concerns, carries out commands, answers for all QPs.

`qp` wires one QP, `board` holds what all parts of a NIC share. IBTA 9.6 and 9.7 (what a receiver checks), annex A17
(RoCEv2); RFC 6040 (an outer header's mark counts).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mrcfabric.errors import RefusedError
from mrcfabric.glance import RcGlance
from mrcfabric.lids import base_lid, check_lids
from mrcfabric.rng import PPM
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.layout import ICRC_SIZE, IPV6_SIZE, PSN_MASK, QPN_MAX, QPN_MIN, RETH_SIZE, UDP_SIZE
from mrcfabric.wire.lrh import lrh_sums_ok
from mrcfabric.wire.lrh_rc import LRH_PEEK_REASONS, LrhPeeker
from mrcfabric.wire.roce import RcPeeker, rc_icrc_ok, read_rc_aeth, read_selective_aeth
from mrcfabric.wire.roce_layout import CNP, KIND_ACK, KIND_NAK, KIND_RNR, RC_ACK, RC_WRITE_ONLY_IMM, SYNDROME_KIND_SHIFT
from nicd.core.board import Board
from nicd.core.commands import ConnectQp, CreateQp, DestroyQp, ModifyQp, PostWrite
from nicd.core.events import STATUS_FLUSHED, STATUS_RETRY_EXCEEDED, Result
from nicd.core.qp_state import QpState
from nicd.core.rc.dcqcn_profile import dcqcn_figures
from nicd.core.rc.footprint import limits_of, slot_bytes, within
from nicd.core.rc.lid_ways import LidWays
from nicd.core.rc.qp import RcLink, RcQp
from nicd.core.rc.rc_stats import RC_DROP_REASONS, RESERVED, RcStats
from nicd.core.rc.state_report import ACCOUNT, peak
from nicd.core.rc.ways import NO_PORT, choose_port
from nicd.core.settings import NicConfig, NicSettings
from nicd.core.stats import TAKEN
from nicd.core.transport import Transport

PACKET_OVERHEAD: Final = 2 * IPV6_SIZE + UDP_SIZE + 12 + RETH_SIZE + ICRC_SIZE
"""A data packet of a pinned path beside its payload."""
_FIRST_QPN: Final = 16
"""The core chooses QP numbers from here on; scripts may use smaller ones."""
TIMEOUT_EXPONENT_MAX: Final = 31
_RTS: Final = int(QpState.RTS)


class RcTransport(Transport):
    """RoCEv2 on one NIC."""

    name = "rc"

    def __init__(self, board: Board, start_ns: Instant = 0) -> None:
        super().__init__(board, start_ns)
        config = board.config
        self._qps: dict[int, RcQp] = {}
        self._next_qpn = _FIRST_QPN
        self._turn = config.index
        """QPs connected so far; NICs begin on different ports."""
        self.rc = RcStats()
        for reason in RC_DROP_REASONS:
            board.stats.drops.setdefault(reason, 0)
        self._figures = None
        if config.settings.cc == "dcqcn":
            self._figures = dcqcn_figures(config.settings, config.ports[0].rate_bps)
        self._selective = config.settings.rc_recovery == "selective"
        self._peek: Callable[[Buffer], tuple[Any, ...]]
        self._peeker: RcPeeker | None = None
        """What `_peek` asks on IPv6; None: not there. To call its method takes less than to call an object."""
        if config.settings.rc_path == "lid":
            check_lids(config.paths.nics, config.settings.lid_lmc)
            own = base_lid(config.index, config.settings.lid_lmc)
            self._peek = LrhPeeker(own, config.settings.lid_lmc, config.options)
            for reason in LRH_PEEK_REASONS:
                board.stats.drops.setdefault(reason, 0)
            self._sums_ok = lrh_sums_ok
        else:
            self._peeker = RcPeeker(config.address, selective=self._selective, options=config.options)
            self._peek = self._peeker.peek
            self._sums_ok = rc_icrc_ok
        self.commands = {
            CreateQp: self._create_qp,
            ConnectQp: self._connect_qp,
            ModifyQp: self._modify_qp,
            DestroyQp: self._destroy_qp,
            PostWrite: self._post_write,
        }

    @classmethod
    def board_of(cls, config: NicConfig) -> Board:
        settings = config.settings
        resident = None
        if settings.sram_bytes:
            resident = max(1, settings.sram_bytes // slot_bytes(settings))
        return Board(config, settings.mtu_bytes + PACKET_OVERHEAD, resident)

    @classmethod
    def slot_bytes(cls, knobs: NicSettings, planes: int) -> int:
        return slot_bytes(knobs)

    # -- packets

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """Check a packet from a port and hand it to its QP. Returns what became of it, as the base class has it."""
        stats = self.board.stats
        peeker = self._peeker
        source: Any  # an address, or a LID
        if peeker is not None:
            reason, traffic_class, opcode, qpn, psn, flags, start, size, source, migrated = peeker.peek(packet)
        else:
            reason, traffic_class, opcode, qpn, psn, flags, start, size, source, migrated = self._peek(packet)
        if reason is not None:
            return stats.drop(reason)
        if not self.board.ports.carrier >> port & 1:
            return stats.drop("no_carrier")
        if not self._sums_ok(packet):
            return stats.drop("icrc")
        qp = self._qps.get(qpn)
        if qp is None:
            return stats.drop("unknown_qp")
        link = qp.link
        if link is None or qp.state > _RTS:
            return stats.drop("qp_not_ready" if qp.state < QpState.RTR else "qp_state")
        if source != link.ways.address:
            return stats.drop("inner_source")
        if link.ways.armed and migrated:
            link.migrate(now)
        if opcode <= RC_WRITE_ONLY_IMM:
            return link.on_data(now, port, packet, traffic_class, opcode, psn, flags, start, size)
        if opcode == RC_ACK:
            return self._on_ack(now, link, psn, packet, start)
        assert opcode == CNP
        link.on_cnp(now)
        return TAKEN

    def _on_ack(self, now: Instant, link: RcLink, psn: int, packet: Buffer, start: int) -> str:
        stats = self.board.stats
        cause = 0
        if self._selective:
            syndrome, _, cause = read_selective_aeth(packet, start)
        else:
            syndrome, _ = read_rc_aeth(packet, start)
        kind = syndrome >> SYNDROME_KIND_SHIFT
        if kind == KIND_RNR:
            if not link.requestor.was_sent(psn):
                return stats.drop("ack_of_unsent")
            # Writes need no receive buffers here, so nobody has reason to send one: do not wait for ever.
            self.rc.rnr_naks_received += 1
            link.fail(now, STATUS_RETRY_EXCEEDED, "receiver_not_ready")
            return TAKEN
        if kind == KIND_NAK:
            stats.nacks_received += 1
        elif kind == KIND_ACK:
            stats.acks_received += 1
        else:
            return stats.drop(RESERVED)
        return TAKEN if link.requestor.on_ack(now, psn, syndrome, cause) else stats.drop("ack_of_unsent")

    def qpn_of(self, packet: Buffer) -> int | None:
        peeked = self._peek(packet)
        return peeked[3] if peeked[0] is None else None

    def carrier_changed(self, now: Instant, port: int) -> None:
        """Tell the QPs of that port; one whose port is gone takes another if it may."""
        settings = self.board.settings
        carrier = self.board.ports.carrier
        for qp in self._qps.values():
            link = qp.link
            if link is None or qp.state > _RTS:
                continue
            own = link.ways.port
            if carrier >> own & 1:
                link.carrier_changed(now, own)
            elif link.ways.armed and link.migrate(now):
                continue
            elif settings.rc_port_failover:
                link.carrier_changed(now, self._choose(link.qpn, link.peer_index, link.peer_qpn))
            else:
                link.carrier_changed(now, NO_PORT)

    # -- commands

    def _create_qp(self, now: Instant, command: CreateQp) -> Result:
        limit = self.board.settings.qps_max
        if len(self._qps) >= limit:
            raise RefusedError(f"all {limit} QPs are in use")
        # Profile 0 is the built-in one, which programs name where they want no other.
        if command.profile:
            raise RefusedError(f"no EV profile {command.profile}: transport {self.name} has no EVs")
        qpn = command.qpn
        if qpn is None:
            while self._next_qpn in self._qps:
                self._next_qpn = self._next_qpn + 1 if self._next_qpn < QPN_MAX else _FIRST_QPN
            qpn = self._next_qpn
            self._next_qpn = qpn + 1 if qpn < QPN_MAX else _FIRST_QPN
        elif not QPN_MIN <= qpn <= QPN_MAX:
            raise RefusedError(f"QP number {qpn}; possible are {QPN_MIN} to {QPN_MAX}")
        elif qpn in self._qps:
            raise RefusedError(f"QP {qpn} exists already")
        self._qps[qpn] = RcQp(self.board, qpn, now)
        return {"qpn": qpn}

    def _connect_qp(self, now: Instant, command: ConnectQp) -> Result:
        qp = self.find(command.qpn)
        nics = self.board.config.paths.nics
        if not 0 <= command.peer_index < nics:
            raise RefusedError(f"no NIC {command.peer_index}; the fabric has {nics}")
        if not QPN_MIN <= command.peer_qpn <= QPN_MAX:
            raise RefusedError(f"peer QP number {command.peer_qpn}; possible are {QPN_MIN} to {QPN_MAX}")
        for psn in (command.psn_send, command.psn_receive):
            if not 0 <= psn <= PSN_MASK:
                raise RefusedError(f"{psn} is no PSN of 24 bits")
        if qp.state != QpState.INIT:
            raise RefusedError(f"QP {qp.qpn} is in state {qp.state.name.lower()}, not init")
        port = self._choose(qp.qpn, command.peer_index, command.peer_qpn)
        self._turn += 1
        qp.enter(now, QpState.RTR, "connected")
        qp.link = RcLink(qp, self.board, self.rc, command, self._figures, port)
        return {"qpn": qp.qpn, "state": qp.state.name.lower()}

    def _choose(self, qpn: int, peer_index: int, peer_qpn: int) -> int:
        ends = ((self.board.config.index, qpn), (peer_index, peer_qpn))
        hashed = self.board.settings.rc_port == "hash"
        return choose_port(self.board.ports.carrier, self._turn, ends if hashed else None)

    def _modify_qp(self, now: Instant, command: ModifyQp) -> Result:
        qp = self.find(command.qpn)
        if command.state == "rts":
            exponent, retries = command.timeout_exponent, command.retry_linear
            if exponent is not None and not 0 <= exponent <= TIMEOUT_EXPONENT_MAX:
                most = TIMEOUT_EXPONENT_MAX
                raise RefusedError(f"a timeout of 4.096 us times 2 to {exponent}; possible are 0 to {most}")
            if retries is not None and not 0 <= retries <= 7:
                raise RefusedError(f"{retries} retries; possible are 0 to 7")
            qp.enter(now, QpState.RTS, "modified")
            qp.link.requestor.set_timers(exponent, retries)
        elif command.state == "error":
            qp.fail(now, STATUS_FLUSHED, "modified")
        else:
            raise RefusedError(f"a QP is moved to rts or error, not to {command.state!r}")
        return {"qpn": qp.qpn, "state": qp.state.name.lower()}

    def _destroy_qp(self, now: Instant, command: DestroyQp) -> Result:
        qp = self.find(command.qpn)
        qp.forget(now)
        del self._qps[qp.qpn]
        if self.board.contexts is not None:
            self.board.contexts.forget(qp.qpn)
        return {"qpn": qp.qpn}

    def _post_write(self, now: Instant, command: PostWrite) -> Result:
        self.find(command.qpn).post(now, command)
        return {"qpn": command.qpn, "wr_id": command.wr_id}

    # -- QPs and counters

    @property
    def qps(self) -> Mapping[int, RcQp]:
        return self._qps

    def bytes_placed(self, qpn: int) -> int:
        qp = self._qps.get(qpn)
        return 0 if qp is None or qp.link is None else qp.link.responder.bytes_placed

    def qp_table(self) -> list[dict[str, int | str]]:
        return [qp.record() for qp in self._qps.values()]

    def windows(self) -> dict[str, int]:
        """The windows of all QPs that are connected and not in error: their number, sums, and the smallest."""
        sizes = [link.requestor.window_bytes for link in self._links()]
        return {
            "count": len(sizes),
            "cwnd_bytes": sum(sizes),
            "cwnd_bytes_min": min(sizes, default=0),
            "inflight_bytes": sum(link.requestor.inflight_bytes for link in self._links()),
        }

    def rc_glance(self) -> RcGlance:
        links, stats = self._links(), self.board.stats
        rates = [link.windows.rate_bps for link in links]
        ports = [0] * self.board.ports.count
        for link in links:
            ports[link.ways.port] += 1
        return RcGlance(
            list(self.qp_states().values()), ports, min(rates, default=0), sum(rates),
            sum(link.windows.slowed for link in links), self.rc.cnps_sent, self.rc.cnps_received,
            self.rc.naks_sent, self.rc.naks_received, stats.retransmitted_bytes,
        )  # fmt: skip

    def counters(self) -> dict[str, Any]:
        links = self._links()
        most = self.board.settings.rc_psns_max
        used = [link.requestor.inflight_packets for link in links]
        rates = [link.windows.rate_bps for link in links]
        return {
            **super().counters(),
            "windows": self.windows(),
            "state_bytes": ACCOUNT.totals(self.board, self._qps),
            "mpr": {
                "granted_packets": most * len(links),
                "used_packets": sum(used),
                "used_ppm_max": max(used, default=0) * PPM // most,
            },
            "rc": {
                **self.rc.record(),
                "retransmitted_bytes": self.board.stats.retransmitted_bytes,
                "rate_bps_min": min(rates, default=0),
                "rate_bps_mean": sum(rates) // len(rates) if rates else 0,
                "qps_slowed": sum(link.windows.slowed for link in links),
                "early_packets": sum(link.responder.early for link in links),
                **self._lid_counters(links),
            },
        }

    def _lid_counters(self, links: list[RcLink]) -> dict[str, int]:
        """What only InfiniBand has: `migrations` to a second path, and `armed`, QPs that still have one."""
        ways = [link.ways for link in links if isinstance(link.ways, LidWays)]
        if not ways:
            return {}
        return {"migrations": sum(way.migrations for way in ways), "armed": sum(way.armed for way in ways)}

    def state_report(self) -> dict[str, Any]:
        shared = (self.rc, self._figures) if self._figures is not None else (self.rc,)
        return ACCOUNT.report(self.board, self._qps, shared)

    def overfull(self) -> list[tuple[int, str]]:
        bounds = limits_of(self.board.settings)
        links = [qp.link for qp in self._qps.values() if qp.link is not None]
        return [(link.qpn, name) for link in links for name in within(peak(link), bounds)]

    def _links(self) -> list[RcLink]:
        return [qp.link for qp in self._qps.values() if qp.link is not None and qp.state <= QpState.RTS]
