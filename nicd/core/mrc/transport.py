"""The MRC transport: hands each received packet to the QP, peer or prober it concerns, and answers for all of them.

`qp_table` has QPs and peers, `qp` wires one QP, `board` holds what all parts share.

MRC 1.0 7.5 (what a receiver dispatches on), RFC 6040 (the outer header's mark counts).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mrcfabric.units import Buffer, Instant
from mrcfabric.wire import srh
from mrcfabric.wire.dscp import CE
from mrcfabric.wire.fastpath import (
    Peeker,
    read_aeth,
    read_data_ts,
    read_endpoint_request,
    read_endpoint_response,
    read_nack,
    read_probe,
    read_sack,
)
from mrcfabric.wire.icrc import icrc_in_view_ok
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    ENDPOINT_QP,
    ENDPOINT_REQUEST,
    ENDPOINT_RESPONSE,
    FLAG_A,
    FLAG_RTX,
    FLAG_TS,
    INNER_OFFSET,
    NACK,
    OP_EV_PROBE,
    PROBE,
    SACK,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
)
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.ev_probing import EvProbing
from nicd.core.mrc.footprint import slot_bytes, within
from nicd.core.mrc.path_control import PathControl
from nicd.core.mrc.profile_control import ProfileControl
from nicd.core.mrc.qp import Link, Qp
from nicd.core.mrc.qp_table import QpTable
from nicd.core.mrc.self_probe import SelfProber
from nicd.core.mrc.self_probe_control import SelfProbeControl
from nicd.core.mrc.state_report import peak, reserved, state_bytes, state_report
from nicd.core.qp_state import QpState
from nicd.core.settings import NicConfig, NicSettings
from nicd.core.stats import PLACED, TAKEN
from nicd.core.transport import Transport

_RTS: Final = int(QpState.RTS)
_view: Final[Callable[[Buffer], memoryview]] = memoryview  # bound once: compiled code looks builtins up each time


class MrcTransport(Transport):
    """MRC on one NIC."""

    name = "mrc"

    def __init__(self, board: MrcBoard, start_ns: Instant = 0) -> None:
        super().__init__(board, start_ns)
        self.mrc_board = board
        config = board.config
        self._self_prober = None if config.turns is None else SelfProber(board, config.turns, start_ns)
        self._table = table = QpTable(board, start_ns)
        self._qps = table.qps
        self._profiles = ProfileControl(board, table.qps)
        self._ev_probing = EvProbing(board, table.qps)
        self.commands = {
            **table.commands,
            **SelfProbeControl(board, self._self_prober).commands,
            **PathControl(board, table.qps, table.by_index).table,
            **self._profiles.table,
            **self._ev_probing.table,
        }
        self._peeker = Peeker(config.dscp, config.address, config.options)
        self._lasthop = config.dscp.trimmed_lasthop

    @classmethod
    def board_of(cls, config: NicConfig) -> MrcBoard:
        return MrcBoard(config)

    @classmethod
    def slot_bytes(cls, knobs: NicSettings, planes: int) -> int:
        return slot_bytes(knobs, planes)

    def carrier_changed(self, now: Instant, port: int) -> None:
        self._table.carrier_changed(now, port)

    def qpn_of(self, packet: Buffer) -> int | None:
        reason, _, _, _, qpn, *_ = self._peeker.peek(packet)
        return qpn if reason is None else None

    # -- QPs

    @property
    def qps(self) -> Mapping[int, Qp]:
        return self._qps

    def bytes_placed(self, qpn: int) -> int:
        qp = self._qps.get(qpn)
        return 0 if qp is None or qp.link is None else qp.link.responder.bytes_placed

    def qp_table(self) -> list[dict[str, int | str]]:
        return [qp.record() for qp in self._qps.values()]

    # -- counters

    def ev_rows(self) -> list[list[int]]:
        return [list(row) for row in self.mrc_board.ev_tally]

    def counters(self) -> dict[str, Any]:
        table, events = self._table, self.mrc_board.ev_events
        return {
            **super().counters(),
            "ev_events": {"told": events.told, "lost": events.lost},
            "self_probes": {} if self._self_prober is None else self._self_prober.counters(),
            "windows": table.windows(),
            "mpr": table.mpr(),
            "peer_ports_down": table.peer_ports_down(),
            "state_bytes": state_bytes(self.mrc_board, self._qps),
        }

    # -- queries

    def ev_table(self, qpn: int) -> list[dict[str, int | str | bool]]:
        qp = self._qps.get(qpn)
        return [] if qp is None or qp.link is None else qp.link.profile.table()

    def ev_profiles(self) -> list[dict[str, int | str | bool | None]]:
        return [profile.record() for profile in self.mrc_board.profiles.by_number.values()]

    def ev_profile(self, number: int) -> list[dict[str, int | str]]:
        return self._profiles.rows(number)

    def take_ev_events(self, limit: int) -> list[dict[str, int | str]]:
        return self.mrc_board.ev_events.take(limit)

    def ev_probes(self, batch: int) -> dict[str, Any]:
        return self._ev_probing.rows(batch)

    def reverse_paths(self) -> list[dict[str, int | bool]]:
        return [row for peer in self._table.peers for row in peer.reverse_rows()]

    def denied_paths(self) -> list[dict[str, int | None]]:
        return [{"plane": plane, "path": path, "peer_index": peer} for plane, path, peer in self.mrc_board.denied]

    def link_table(self) -> dict[str, Any]:
        return {} if self._self_prober is None else self._self_prober.table()

    def state_report(self) -> dict[str, Any]:
        return state_report(self.mrc_board, self._qps, self._table.peers)

    def overfull(self) -> list[tuple[int, str]]:
        return [(qpn, name) for qpn, qp in self._qps.items() if qp.link is not None
                for name in within(peak(qp.link), reserved(self.mrc_board, qp.link))]  # fmt: skip

    # -- receiving

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """Check a packet from a port and hand it to its QP or peer. Returns what became of it, see `onchip.Receive`."""
        stats = self.mrc_board.stats
        reason, traffic_class, opcode, flags, dest_qp, psn, ev, start, size, source, state = self._peeker.peek(packet)
        if reason is not None:
            return self._receive_odd(now, port, packet, reason)
        if not self.mrc_board.ports.carrier >> port & 1:
            return stats.drop("no_carrier")
        view = _view(packet)
        # A trimmed packet has no ICRC.
        if size >= 0 and not icrc_in_view_ok(view, INNER_OFFSET, state):
            return stats.drop("icrc")
        if dest_qp == ENDPOINT_QP:
            if opcode == WRITE_ONLY:
                return self._receive_own(now, port, traffic_class, psn, packet, source, size)
            return self._receive_endpoint(now, port, opcode, psn, ev, packet, source, size)
        qp = self._qps.get(dest_qp)
        if qp is None:
            return stats.drop("unknown_qp")
        link = qp.link
        if link is None or qp.state > _RTS:
            # MRC 1.0 section 3: before set-up nothing is received.
            return stats.drop("qp_not_ready" if qp.state < QpState.RTR else "qp_state")
        if source != link.peer.address:
            return stats.drop("inner_source")
        if opcode <= WRITE_ONLY_IMM:
            if size >= 0:
                return link.responder.on_data(now, port, view, traffic_class, opcode, flags, psn, ev, start, size)
            stamp = read_data_ts(packet)[2] if flags & FLAG_TS else 0
            return link.responder.on_trimmed(now, psn, ev, traffic_class >> 2 == self._lasthop, flags, stamp)
        if size < 0:
            return stats.drop("trimmed_control")
        return self._receive_control(now, port, link, opcode, flags, psn, ev, packet, traffic_class)

    def _receive_odd(self, now: Instant, port: int, packet: Buffer, reason: str) -> str:
        """Take a packet of an unusual form: one with a segment routing header, or one to drop."""
        stripped = None
        if srh.follows(packet):
            reason = "srh"
            stripped = srh.strip(packet)
        if stripped is None:
            return self.mrc_board.stats.drop(reason)
        return self.arrive(now, port, stripped)

    def _receive_control(
        self,
        now: Instant,
        port: int,
        link: Link,
        opcode: int,
        flags: int,
        psn: int,
        ev: int,
        packet: Buffer,
        traffic_class: int,
    ) -> str:
        """A control packet for a QP."""
        stats = self.mrc_board.stats
        good = True
        if opcode == SACK:
            stats.sacks_received += 1
            good = link.on_sack(now, read_sack(packet), flags & FLAG_RTX > 0, port)
        elif opcode == ACKNOWLEDGE:
            stats.acks_received += 1
            syndrome, msn = read_aeth(packet)
            good = link.requestor.on_ack(now, psn, syndrome, msn, bool(flags & FLAG_A))
        elif opcode == NACK:
            stats.nacks_received += 1
            reason, entropy, nack_psn, _ = read_nack(packet)
            good = link.on_nack(now, reason, entropy, nack_psn)
        elif opcode == PROBE:
            probe_id, stamp = read_probe(packet)
            link.responder.on_probe(now, ev, probe_id, traffic_class & CE == CE, stamp, port)
        else:
            return stats.drop("endpoint_op")
        return TAKEN if good else stats.drop("ack_of_unsent")

    def _receive_own(
        self, now: Instant, port: int, traffic_class: int, psn: int, packet: Buffer, source: bytes, size: int
    ) -> str:
        """Take a WRITE for the endpoint QP: it can only be a self probe of ours that has come back."""
        prober = self._self_prober
        if source != self.mrc_board.config.address or prober is None:
            return self.mrc_board.stats.drop("endpoint_op")
        if not prober.on_return(now, port, traffic_class, psn, packet, size < 0):
            return self.mrc_board.stats.drop("self_probe")
        return TAKEN if size < 0 else PLACED

    def _receive_endpoint(
        self, now: Instant, port: int, opcode: int, psn: int, ev: int, packet: Buffer, source: bytes, size: int
    ) -> str:
        """An endpoint request or response, from NIC to NIC."""
        stats = self.mrc_board.stats
        peer = self._table.peer_of(source)
        if peer is None:
            return stats.drop("unknown_peer")
        if size < 0 or opcode not in (ENDPOINT_REQUEST, ENDPOINT_RESPONSE):
            return stats.drop("endpoint_op")
        if opcode == ENDPOINT_REQUEST:
            op, mask, timestamp = read_endpoint_request(packet)
            if op > OP_EV_PROBE:
                return stats.drop("endpoint_op")
            peer.on_request(now, psn & 0xFFFF, op, mask, timestamp, port, ev)
        else:
            op, stamp = read_endpoint_response(packet, self.mrc_board.config.options)
            peer.on_response(now, psn & 0xFFFF, op, stamp, port, ev)
        return TAKEN
