"""The account of one NIC: what it was offered, sent and received, compared with its own counters at every step.

Owns conservation at a NIC and the agreement of counters with the packets themselves, which are read here once more.
"""

from typing import Any

from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire import srh
from mrcfabric.wire.fastpath import peeker
from mrcfabric.wire.icrc import icrc_ok
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    ENDPOINT_QP,
    FLAG_RTX,
    IPV6_SIZE,
    NACK,
    NEXT_HEADER_IPV6,
    PROBE,
    SACK,
    WRITE_ONLY_IMM,
)
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import parse
from nicd.core.class_ports import ClassPorts
from nicd.core.events import Completion, Retransmit
from nicd.core.nic import Nic
from swarm import anatomy
from swarm.invariant import InvariantError
from swarm.ledger import Ledger, PortLedger

NO_ARRIVALS = frozenset(
    {"no_port", "psn_window", "memory", "ack_of_unsent", "no_bitmap", "no_pkt_buffer", "no_resource",
     "message_mismatch", "immediates_overflow"}
)  # fmt: skip
"""Drop reasons that are counted beside the arrival of a packet, or without one."""
SENT_KINDS = {SACK: "sacks_sent", NACK: "nacks_sent", ACKNOWLEDGE: "acks_sent", PROBE: "probes_sent"}
RECEIVED = ("data_received", "sacks_received", "acks_received", "nacks_received", "probes_answered")


def plain(packet: Buffer) -> Buffer:
    """The packet without its segment routing header, if it has one."""
    if not srh.follows(packet):
        return packet
    out = bytearray(packet[:IPV6_SIZE]) + packet[IPV6_SIZE + srh.SRH_SIZE :]
    out[srh.NEXT_HEADER_OFFSET] = NEXT_HEADER_IPV6
    out[4:6] = (int.from_bytes(packet[4:6], "big") - srh.SRH_SIZE).to_bytes(2, "big")
    return out


class NicAccount:
    """Counts kept beside one NIC."""

    def __init__(self, nic: Nic, ledger: Ledger, stepwise: bool) -> None:
        self._nic = nic
        self._stepwise = stepwise
        self._ledger = ledger
        self._peek = peeker(nic.config.dscp, None, nic.config.options)
        self._peek_own = peeker(nic.config.dscp, nic.config.address, nic.config.options)
        """As the NIC reads what arrives: a harmed outer address may bring what was sent to another one."""
        self._ports = PortLedger(nic.name, anatomy.board(nic).ports.egress)
        self._offered = [0] * len(nic.config.ports)
        self._kinds: dict[int, int] = {}
        self._data = 0
        self._own_probes = 0
        self._payload = 0
        self._resent = 0
        self._resent_bytes = 0
        self._sent = 0
        self._received = 0
        self._endpoint = 0
        self._pending: list[int] = []
        self._pauses: list[int] = []
        self._obeyed = 0
        self._judged: dict[str, int] = {}
        self._completions = 0
        self._flushed = 0
        self._failed = 0
        self._qps = 0

    def offered(self, port: int, packet: bytearray) -> tuple[int, int, int, int, int]:
        """A packet goes into a port's queue; returns (opcode, flags, QP number, PSN, EV) for others to look at."""
        _, _, opcode, flags, qpn, psn, ev, _, size, *_ = self._peek(plain(packet))
        self._offered[port] += 1
        if qpn == ENDPOINT_QP and opcode <= WRITE_ONLY_IMM:
            self._own_probes += 1
        elif opcode <= WRITE_ONLY_IMM:
            self._data += 1
            self._payload += size
            if flags & FLAG_RTX:
                self._resent += 1
                self._resent_bytes += size
        else:
            self._kinds[opcode] = self._kinds.get(opcode, 0) + 1
        return opcode, flags, qpn, psn, ev

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Frames come in; which of them are for the NIC as a whole is known once commands of the step are done."""
        self._pending = []
        self._pauses = []
        for _, rank, port, _, packet in inputs:
            if rank == Rank.FRAME:
                self._received += 1
                self._ledger.received += 1
                if isinstance(packet, ControlFrame):
                    if parse(packet) is not None:
                        self._pauses.append(port)
                    continue
                reason, _, _, _, qpn, _, _, _, size, *_ = self._peek_own(plain(packet))
                # A trimmed one has no ICRC to be wrong.
                if reason is None and qpn == ENDPOINT_QP and (size < 0 or icrc_ok(plain(packet))):
                    self._pending.append(port)

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Everything adds up. Raises InvariantError."""
        self._sent += len(transmits)
        self._ledger.sent += len(transmits)
        for event in events:
            if isinstance(event, Retransmit):
                self._judged[event.cause] = self._judged.get(event.cause, 0) + event.count
            elif isinstance(event, Completion) and event.opcode != "recv_with_imm":
                self._completions += 1
        self._check_ports(at_ns)
        self._check_sent(at_ns)
        if self._stepwise:
            self._check_received(at_ns)
        self._check_losses(at_ns)

    def _check_ports(self, at_ns: Instant) -> None:
        self._ports.check(at_ns)
        if self._ports.reached != self._offered:
            what = f"{self._offered} packets offered to ports, {self._ports.reached} accounted for"
            raise InvariantError("conservation", self._nic.name, at_ns, what)
        left = sum(self._ports.departed)
        if left != self._sent:
            raise InvariantError("conservation", self._nic.name, at_ns, f"{left} packets departed, {self._sent} sent")

    def _check_sent(self, at_ns: Instant) -> None:
        stats = anatomy.board(self._nic).stats
        pairs = {
            "data_packets": self._data,
            "payload_bytes": self._payload,
            "retransmitted_bytes": self._resent_bytes,
            "completions": self._completions,
            **{name: self._kinds.get(opcode, 0) for opcode, name in SENT_KINDS.items()},
        }
        for name, seen in pairs.items():
            if getattr(stats, name) != seen:
                raise InvariantError("counters", self._nic.name, at_ns, f"{name} {getattr(stats, name)}, seen {seen}")
        if sum(stats.retransmits.values()) != self._resent:
            what = f"retransmits {stats.retransmits}, {self._resent} packets with rtx"
            raise InvariantError("counters", self._nic.name, at_ns, what)

    def _check_received(self, at_ns: Instant) -> None:
        board = anatomy.board(self._nic)
        stats = board.stats
        drops = {reason: count for reason, count in stats.drops.items() if reason not in NO_ARRIVALS}
        self._endpoint += sum(board.ports.carrier >> port & 1 for port in self._pending)
        if isinstance(board.ports, ClassPorts):
            self._obeyed += sum(board.ports.carrier >> port & 1 for port in self._pauses)
        self._pending = []
        endpoint = self._endpoint - drops["unknown_peer"] - drops["endpoint_op"] - drops["self_probe"]
        taken = sum(getattr(stats, name) for name in RECEIVED) + sum(stats.trims.values()) + endpoint
        taken += anatomy.held_for_contexts(self._nic) + self._obeyed
        if self._received != taken + sum(drops.values()):
            what = f"{self._received} frames came, {taken} taken, {sum(drops.values())} dropped"
            raise InvariantError("conservation", self._nic.name, at_ns, what)

    def _check_losses(self, at_ns: Instant) -> None:
        """Judged lost = sent again + taken back + waiting to be sent again + dropped with a QP that failed."""
        stats = anatomy.board(self._nic).stats
        judged = sum(self._judged.values())
        if judged != stats.packets_lost:
            what = f"packets_lost {stats.packets_lost}, events tell of {judged}"
            raise InvariantError("retransmission", self._nic.name, at_ns, what)
        for cause, count in stats.retransmits.items():
            if count > self._judged.get(cause, 0):
                what = f"{count} retransmits for {cause}, {self._judged.get(cause, 0)} losses"
                raise InvariantError("retransmission", self._nic.name, at_ns, what)
        waiting = sum(anatomy.lost(link.requestor) for _, link in anatomy.links(self._nic))
        flushed = judged - sum(stats.retransmits.values()) - stats.taken_back - waiting
        failed = stats.qp_errors > self._failed or len(anatomy.qps(self._nic)) < self._qps
        self._failed, self._qps = stats.qp_errors, len(anatomy.qps(self._nic))
        if flushed != self._flushed and not (failed and flushed > self._flushed):
            again, back = stats.retransmits, stats.taken_back
            what = f"{judged} judged lost, {again} sent again, {back} taken back, {waiting} wait"
            raise InvariantError("retransmission", self._nic.name, at_ns, what)
        self._flushed = flushed
