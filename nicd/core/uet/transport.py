"""The UET transport: hands each received packet to its context, opens contexts for packets that say SYN, carries out
commands, answers for all QPs.

`qp` wires one QP, `board` holds what all parts of a NIC share. UEC PDS (contexts, what a receiver checks), UEC SES
(targets); UEC CMS (credits, ECN echo).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from mrcfabric.rng import PPM, Rng
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.dscp import CE
from mrcfabric.wire.fastpath import BAD_OPCODE
from mrcfabric.wire.uet import (
    read_ack_cc,
    read_credit_target,
    read_payload_word,
    read_response,
    read_target,
    read_write,
    uet_peeker,
    uet_sum_ok,
)
from mrcfabric.wire.uet_layout import (
    ACK_CC,
    CC_CREDIT,
    CC_REQUESTS,
    CONTROL,
    CONTROL_ACK_REQUEST,
    CONTROL_CLEAR,
    CONTROL_CLEAR_REQUEST,
    CONTROL_CLOSE,
    CONTROL_CLOSE_REQUEST,
    CONTROL_CREDIT,
    CONTROL_CREDIT_REQUEST,
    CONTROL_PROBE,
    COUNT_MASK,
    FLAG_CLEAR,
    FLAG_CLOSE,
    FLAG_MARKED,
    FLAG_SYN,
    NACK,
    NACK_INVALID_SYN,
    NACK_MODE,
    NACK_NO_PDC,
    NACK_UNKNOWN_PDC,
    NEXT_RESPONSE,
    NEXT_STANDARD,
    PID_SHIFT,
    PSN_MASK_UET,
    REQUESTS,
    ROD_REQUESTS,
    SYN_OFFSET_MAX,
)
from mrcfabric.wire.uet_templates import request_overhead
from nicd.core.board import Board
from nicd.core.qp_state import QpState
from nicd.core.settings import NicConfig, NicSettings
from nicd.core.stats import TAKEN
from nicd.core.transport import Transport
from nicd.core.uet.contexts import Contexts
from nicd.core.uet.credits import MOST_PRODUCTS, Grantor
from nicd.core.uet.footprint import limits_of, slot_bytes, within
from nicd.core.uet.levels import glance_of, levels
from nicd.core.uet.oversubscribed import Oversubscribed
from nicd.core.uet.peer import wire_overhead
from nicd.core.uet.qp import Closing, UetLink, UetQp
from nicd.core.uet.qp_table import QpTable
from nicd.core.uet.state_report import ACCOUNT, peak
from nicd.core.uet.target import Target
from nicd.core.uet.uet_stats import (
    CONTROL_KIND,
    INVALID_SYN,
    NO_CONTEXT,
    UET_DROP_REASONS,
    UNKNOWN_CONTEXT,
    UetStats,
)

_RTS: Final = int(QpState.RTS)
Head: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, bytes, int]
"""(type, flags, field of 16 bits, PSN, SPDCID, DPDCID, start of SES, payload start, payload size, traffic class, source
address, entropy) of a packet."""


class UetTransport(Transport):
    """UET on one NIC."""

    name = "uet"

    def __init__(self, board: Board, start_ns: Instant = 0) -> None:
        super().__init__(board, start_ns)
        config, settings = board.config, board.settings
        self.uet = UetStats()
        for reason in UET_DROP_REASONS:
            board.stats.drops.setdefault(reason, 0)
        # A NIC that was started again must not use the numbers of its earlier life.
        self.contexts = Contexts(Rng(config.seed, config.name, "pdcid", start_ns))
        self._targets: dict[tuple[bytes, int], Target] = {}
        """Address and PDCID of an initiator -> the context that it opened."""
        self._peek = uet_peeker(config.address, dscp=config.dscp, crc=settings.uet_crc)
        self._crc = settings.uet_crc
        self._last_hop = config.dscp.trimmed_lasthop
        self._grantor: Grantor | None = None
        if settings.uet_cc in ("rccc", "both"):
            packet = settings.mtu_bytes + wire_overhead(True, self._crc)
            rate = sum(port.rate_bps for port in config.ports)
            most = MOST_PRODUCTS * max(board.bdp_bytes, packet)
            idle = board.bdp_bytes * settings.uet_idle_ppt // 1000
            slowed = (
                Oversubscribed(settings, Rng(config.seed, config.name, "occc", start_ns)) if settings.uet_occc else None
            )
            self._grantor = Grantor(board.timers, rate, packet * settings.uet_grant_packets, most, idle, slowed)
        self._table = QpTable(board, self, self._grantor)
        self._qps = self._table.qps
        self.commands = self._table.commands()

    @classmethod
    def board_of(cls, config: NicConfig) -> Board:
        settings = config.settings
        resident = None
        if settings.sram_bytes:
            resident = max(1, settings.sram_bytes // slot_bytes(settings))
        credited = settings.uet_cc in ("rccc", "both")
        return Board(config, settings.mtu_bytes + request_overhead(credited, settings.uet_crc), resident)

    @classmethod
    def slot_bytes(cls, knobs: NicSettings, planes: int) -> int:
        return slot_bytes(knobs)

    # -- packets

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """Check a packet from a port and hand it to its context. Returns what became of it, as the base class says."""
        stats = self.board.stats
        (reason, traffic, kind, following, flags, field, psn, spdcid, dpdcid, ses, start, size, source,
         entropy) = self._peek(packet)  # fmt: skip
        if reason is not None:
            return stats.drop(reason)
        if not self.board.ports.carrier >> port & 1:
            return stats.drop("no_carrier")
        if size >= 0 and not uet_sum_ok(packet, self._crc):
            return stats.drop("icrc")
        if kind in REQUESTS:
            if following != NEXT_STANDARD:
                return stats.drop(BAD_OPCODE)
            head = (kind, flags, field, psn, spdcid, dpdcid, ses, start, size, traffic, source, entropy)
            return self._on_request(now, port, packet, head)
        if size < 0:
            return stats.drop("trimmed_control")
        if kind == CONTROL:
            return self._on_control(now, port, packet, following, flags, field, psn, spdcid, dpdcid, source, entropy)
        context = self.contexts.find(dpdcid)
        if not isinstance(context, UetLink | Closing) or context.peer.address != source:
            return stats.drop(UNKNOWN_CONTEXT)
        if kind == NACK:
            stats.nacks_received += 1
            self.uet.nack_received(field >> 8)
            if isinstance(context, Closing):
                context.end()
                return TAKEN
            taken = context.refusals.on_nack(now, field >> 8, psn, spdcid, flags, read_payload_word(packet))
            return TAKEN if taken else stats.drop("ack_of_unsent")
        stats.acks_received += 1
        if isinstance(context, Closing):
            context.end()
            return TAKEN
        return self._on_ack(now, context, packet, kind, following, flags, field, psn, spdcid, ses)

    def _on_ack(
        self, now: Instant, link: UetLink, packet: Buffer, kind: int, following: int, flags: int, field: int, psn: int,
        spdcid: int, ses: int,
    ) -> str:  # fmt: skip
        stats = self.board.stats
        marked = bool(flags & FLAG_MARKED)
        cc = read_ack_cc(packet) if kind == ACK_CC else None
        response = read_response(packet, ses) if following == NEXT_RESPONSE else None
        if not link.initiator.on_ack(now, flags, field, psn, spdcid, cc, response, marked):
            return stats.drop("ack_of_unsent")
        if marked:
            stats.ecn_echoed += 1
        if cc is not None and cc.kind == CC_CREDIT:
            self._granted(link, cc.credit)
        if flags & FLAG_CLOSE:
            link.asked_to_close(now)
        elif flags & FLAG_CLEAR:
            link.asked_to_clear(now)
        return TAKEN

    def _granted(self, link: UetLink, count24: int) -> None:
        credit = link.peer.credit
        if credit is None:
            return
        if credit.grant(count24):
            self.uet.grants_received += 1
            self.uet.speculations_stopped += credit.stop()
            link.peer.wake()

    def _on_request(self, now: Instant, port: int, packet: Buffer, head: Head) -> str:
        kind, flags, field, psn, spdcid, dpdcid, ses, start, size, traffic, source, entropy = head
        stats = self.board.stats
        if flags & FLAG_SYN:
            target: Target | str = self._opened(now, port, packet, head)
        else:
            found = self.contexts.find(dpdcid)
            if isinstance(found, Target) and found.peer.address == source and found.peer_pdcid == spdcid:
                target = found
            else:
                self._nack(now, port, source, entropy, NACK_UNKNOWN_PDC, psn, spdcid)
                return stats.drop(UNKNOWN_CONTEXT)
        if isinstance(target, str):
            return target
        if target.ordered != (kind in ROD_REQUESTS):
            self._nack(now, port, source, entropy, NACK_MODE, psn, spdcid, target.pdcid)
            return stats.drop(UNKNOWN_CONTEXT)
        if self._grantor is not None and kind in CC_REQUESTS:
            self._grantor.saw(now, traffic & CE == CE, size < 0, traffic >> 2 != self._last_hop)
            _, wanted = read_credit_target(packet)
            self._grantor.wants(now, target.peer.index, wanted, target.grant)
        marked, last_hop = traffic & CE == CE, traffic >> 2 == self._last_hop
        if size >= 0:
            stats.data_received += 1
            stats.ecn_marks += marked
        else:
            stats.trims["last_hop" if last_hop else "path"] += 1
        return target.on_request(now, port, packet, entropy, flags, field, psn, ses, start, size, marked, last_hop)

    def _opened(self, now: Instant, port: int, packet: Buffer, head: Head) -> Target | str:
        """The context of a packet that says SYN, opened if there is none; the reason why it cannot be."""
        kind, _, _, psn, spdcid, offset, ses, _, _, _, source, entropy = head
        stats = self.board.stats
        target = self._targets.get((source, spdcid))
        first = psn - (offset & SYN_OFFSET_MAX) & PSN_MASK_UET
        if target is not None:
            if target.first & PSN_MASK_UET == first:
                return target
            self._nack(now, port, source, entropy, NACK_INVALID_SYN, psn, spdcid)
            return stats.drop(INVALID_SYN)
        pid, resource = read_target(packet, ses)
        qp = self._qps.get(pid << PID_SHIFT | resource)
        if qp is None:
            return stats.drop("unknown_qp")
        link = qp.link
        if link is None or qp.state > _RTS:
            return stats.drop("qp_not_ready" if qp.state < QpState.RTR else "qp_state")
        if source != link.peer.address:
            return stats.drop("inner_source")
        if read_write(packet, ses).initiator != link.peer_qpn:
            return stats.drop("message_mismatch")
        if len(self._targets) >= self.board.settings.uet_contexts_max:
            self.uet.contexts_refused += 1
            self._ask_for_room(now)
            self._nack(now, port, source, entropy, NACK_NO_PDC, psn, spdcid)
            return stats.drop(NO_CONTEXT)
        target = Target(self.board, self.uet, link.peer, spdcid, link.qpn, link.peer_qpn, first, kind in ROD_REQUESTS)
        self.contexts.enter(target)
        self._targets[source, spdcid] = target
        link.targets[target.pdcid] = target
        self.uet.contexts_taken += 1
        return target

    def _ask_for_room(self, now: Instant) -> None:
        """Ask the initiator whose context was silent longest to close it, if none was asked and has not answered."""
        targets = self._targets.values()
        settings = self.board.settings
        idle = [target for target in targets if target.idle and now - target.asked_ns > settings.rto_ns]
        if idle:
            min(idle, key=lambda target: target.heard_ns).ask_to_close(now)
            self.uet.closes_asked += 1

    def _nack(
        self, now: Instant, port: int, source: bytes, entropy: int, code: int, psn: int, dpdcid: int, spdcid: int = 0
    ) -> None:
        """Refuse a packet that belongs to no context; strangers get no answer."""
        peer = self._table.by_address.get(source)
        if peer is not None and peer.send(now, port, peer.template.nack(entropy, 0, code, psn, spdcid, dpdcid)):
            self.board.stats.nacks_sent += 1
            self.uet.nack_sent(code)

    def _on_control(
        self, now: Instant, port: int, packet: Buffer, kind: int, flags: int, opaque: int, psn: int, spdcid: int,
        dpdcid: int, source: bytes, entropy: int,
    ) -> str:  # fmt: skip
        stats = self.board.stats
        context = self._targets.get((source, spdcid)) if flags & FLAG_SYN else self.contexts.find(dpdcid)
        if isinstance(context, UetLink) and context.peer.address == source:
            if kind == CONTROL_CREDIT:
                self._granted(context, read_payload_word(packet) & COUNT_MASK)
            elif kind == CONTROL_CLOSE_REQUEST:
                context.asked_to_close(now)
            elif kind == CONTROL_CLEAR_REQUEST:
                context.asked_to_clear(now)
            else:
                return stats.drop(CONTROL_KIND)
            self.uet.controls_received += 1
            return TAKEN
        if isinstance(context, Closing) and context.peer.address == source:
            # What the target had sent before it heard of the end.
            self.uet.controls_received += 1
            return TAKEN
        if not isinstance(context, Target) or context.peer.address != source or context.peer_pdcid != spdcid:
            if kind == CONTROL_CLOSE:
                self._nack(now, port, source, entropy, NACK_UNKNOWN_PDC, psn, spdcid)
            return stats.drop(UNKNOWN_CONTEXT)
        if kind == CONTROL_PROBE:
            context.on_probe(now, port, entropy, opaque, read_payload_word(packet))
        elif kind == CONTROL_ACK_REQUEST:
            context.on_ack_request(now, port, entropy)
        elif kind == CONTROL_CLEAR:
            context.on_clear(now, read_payload_word(packet))
        elif kind == CONTROL_CLOSE:
            context.on_close(now, port, entropy, psn)
            self.forget_target(context)
        elif kind == CONTROL_CREDIT_REQUEST and self._grantor is not None:
            wanted = read_payload_word(packet) & COUNT_MASK
            self._grantor.wants(now, context.peer.index, wanted, context.grant)
            self._grantor.repeat(now, context.peer.index)
        else:
            return stats.drop(CONTROL_KIND)
        self.uet.controls_received += 1
        return TAKEN

    def forget_target(self, target: Target) -> None:
        """A target's context is gone."""
        target.stop()
        self.contexts.leave(target.pdcid)
        self._targets.pop((target.peer.address, target.peer_pdcid), None)
        qp = self._qps.get(target.qpn)
        if qp is not None and qp.link is not None and qp.link.targets.pop(target.pdcid, None) is not None:
            qp.link.placed_before += target.bytes_placed

    def qpn_of(self, packet: Buffer) -> int | None:
        peeked = self._peek(packet)
        if peeked[0] is not None:
            return None
        if peeked[2] in REQUESTS:
            pid, resource = read_target(packet, peeked[9])
            return pid << PID_SHIFT | resource
        context = self.contexts.find(peeked[8])
        return context.qpn if isinstance(context, UetLink | Target) else None

    def carrier_changed(self, now: Instant, port: int) -> None:
        """QPs look at the carriers whenever they send."""
        for peer in self._table.peers.values():
            peer.wake()

    # -- QPs and counters

    @property
    def qps(self) -> Mapping[int, UetQp]:
        return self._qps

    def bytes_placed(self, qpn: int) -> int:
        qp = self._qps.get(qpn)
        return 0 if qp is None or qp.link is None else qp.link.bytes_placed

    def qp_table(self) -> list[dict[str, int | str]]:
        return [qp.record() for qp in self._qps.values()]

    def counters(self) -> dict[str, Any]:
        links = self._links()
        contexts = [window for peer in self._table.peers.values() for window in peer.windows.contexts]
        most = self.board.settings.mpr_units * 128
        used = [len(link.initiator.table.by_psn) for link in links]
        sizes = [window.cwnd_bytes for window in contexts if window.binds]
        return {
            **super().counters(),
            "windows": {
                "count": len(sizes),
                "cwnd_bytes": sum(sizes),
                "cwnd_bytes_min": min(sizes, default=0),
                "inflight_bytes": sum(window.inflight_bytes for window in contexts),
            },
            "state_bytes": ACCOUNT.totals(self.board, self._qps),
            "mpr": {
                "granted_packets": most * len(links),
                "used_packets": sum(used),
                "used_ppm_max": max(used, default=0) * PPM // most,
            },
            "uet": {
                **self.uet.record(),
                "grants_sent": 0 if self._grantor is None else self._grantor.grants,
                **levels(links, self._table.peers.values(), self.contexts, len(self._targets), self._grantor),
            },
        }

    def uet_glance(self) -> Sequence[Any]:
        return glance_of(self._links(), len(self._targets))

    def state_report(self) -> dict[str, Any]:
        return ACCOUNT.report(self.board, self._qps, (self.uet, self.contexts, self))

    def overfull(self) -> list[tuple[int, str]]:
        bounds = limits_of(self.board.settings)
        links = [qp.link for qp in self._qps.values() if qp.link is not None]
        return [(link.qpn, name) for link in links for name in within(peak(link), bounds)]

    def _links(self) -> list[UetLink]:
        return [qp.link for qp in self._qps.values() if qp.link is not None and qp.state <= QpState.RTS]
