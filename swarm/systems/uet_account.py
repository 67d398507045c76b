"""The account of one UET NIC: what it was offered, sent and received, compared with its own counters at every step.

Owns conservation at such a NIC and the agreement of its counters with the packets themselves, which are read here once
more. `swarm.systems.rc_account` does the same for RC.
"""

from typing import Any, Final, NamedTuple

from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.units import Instant
from mrcfabric.wire.uet import read_response, read_target, uet_peeker
from mrcfabric.wire.uet_layout import ACK_CC, FLAG_RETX, NACK, NEXT_RESPONSE, PID_SHIFT, RC_OK, REQUESTS, RESPONSE
from nicd.core.events import Completion, Retransmit
from nicd.core.nic import Nic
from nicd.core.uet.uet_stats import NO_RESPONSE, OUT_OF_ORDER
from swarm import anatomy
from swarm.invariant import InvariantError
from swarm.ledger import Ledger, PortLedger
from swarm.systems import inside, uet_inside

NO_ARRIVALS: Final = frozenset(
    {OUT_OF_ORDER, NO_RESPONSE, "message_mismatch", "memory", "psn_window", "ack_of_unsent", "no_port"}
)
"""Drop reasons that are counted beside the arrival of a packet, or without one."""
RECEIVED: Final = ("data_received", "acks_received", "nacks_received")


class UetData(NamedTuple):
    """A data packet that a NIC offered to a port."""

    port: int
    address: bytes
    """Where it goes."""
    qpn: int
    psn: int
    """32 bits."""
    again: bool


class UetAccount:
    """Counts kept beside one NIC."""

    def __init__(self, nic: Nic, ledger: Ledger, stepwise: bool) -> None:
        self._nic = nic
        self._stepwise = stepwise
        self._ledger = ledger
        self._board = inside.board(nic)
        self._peek = uet_peeker(dscp=nic.config.dscp, crc=nic.config.settings.uet_crc)
        self._ports = PortLedger(nic.name, self._board.ports.egress)
        self._offered = [0] * len(nic.config.ports)
        names = ("acks_sent", "nacks_sent", "controls_sent", "responses_sent", "responses_refused")
        self._counts = dict.fromkeys(names, 0)
        self._data = self._payload = self._resent = 0
        self._sent = self._received = self._completions = 0
        self._judged: dict[str, int] = {}

    def offered(self, port: int, packet: bytearray) -> UetData | None:
        """A packet goes into a port's queue; what it is if it has data."""
        (reason, _, kind, following, flags, _, psn, _, _, ses, _, size, _, _) = self._peek(packet)
        if reason is not None:
            raise self._broken("packets", self._nic.now_ns, f"sends what nobody takes: {reason}")
        self._offered[port] += 1
        if kind in REQUESTS:
            self._data += 1
            self._payload += size
            self._resent += bool(flags & FLAG_RETX)
            pid, resource = read_target(packet, ses)
            again = bool(flags & FLAG_RETX)
            return UetData(port, bytes(packet[24:40]), pid << PID_SHIFT | resource, psn, again)
        if kind == NACK:
            self._counts["nacks_sent"] += 1
        elif kind == ACK_CC:
            self._counts["acks_sent"] += 1
            response = read_response(packet, ses) if following == NEXT_RESPONSE else None
            if response is not None and response[0] == RESPONSE:
                self._counts["responses_sent" if response[1] == RC_OK else "responses_refused"] += 1
        else:
            self._counts["controls_sent"] += 1
        return None

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Frames come in."""
        for _, rank, _, _, _ in inputs:
            if rank == Rank.FRAME:
                self._received += 1
                self._ledger.received += 1

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Everything adds up. Raises InvariantError."""
        self._sent += len(transmits)
        self._ledger.sent += len(transmits)
        for event in events:
            if isinstance(event, Retransmit):
                self._judged[event.cause] = self._judged.get(event.cause, 0) + event.count
            elif isinstance(event, Completion) and event.opcode != "recv_with_imm":
                self._completions += 1
        self._ports.check(at_ns)
        if self._ports.reached != self._offered:
            what = f"{self._offered} packets offered to ports, {self._ports.reached} accounted for"
            raise self._broken("conservation", at_ns, what)
        left = sum(self._ports.departed)
        if left != self._sent:
            raise self._broken("conservation", at_ns, f"{left} packets departed, {self._sent} sent")
        self._check_sent(at_ns)
        if self._stepwise:
            self._check_received(at_ns)

    def _broken(self, invariant: str, at_ns: Instant, what: str) -> InvariantError:
        return InvariantError(invariant, self._nic.name, at_ns, what)

    def _check_sent(self, at_ns: Instant) -> None:
        stats, uet = self._board.stats, uet_inside.transport(self._nic).uet
        told = {
            "data_packets": stats.data_packets, "payload_bytes": stats.payload_bytes, "completions": stats.completions,
            "packets_lost": stats.packets_lost, "retransmits": sum(stats.retransmits.values()),
            "acks_sent": stats.acks_sent, "nacks_sent": stats.nacks_sent, "controls_sent": uet.controls_sent,
            "responses_sent": uet.responses_sent, "responses_refused": uet.responses_refused,
        }  # fmt: skip
        seen = {
            "data_packets": self._data, "payload_bytes": self._payload, "completions": self._completions,
            "packets_lost": sum(self._judged.values()), "retransmits": self._resent, **self._counts,
        }  # fmt: skip
        if told != seen:
            raise self._broken("counters", at_ns, f"{told}, seen {seen}")
        if sum(uet.nacks_sent.values()) != stats.nacks_sent or sum(uet.nacks_received.values()) != stats.nacks_received:
            raise self._broken("counters", at_ns, "NACKs by code are not all NACKs")
        for cause, count in stats.retransmits.items():
            if count > self._judged.get(cause, 0):
                what = f"{count} retransmits for {cause}, {self._judged.get(cause, 0)} losses"
                raise self._broken("retransmission", at_ns, what)

    def _check_received(self, at_ns: Instant) -> None:
        stats, uet = self._board.stats, uet_inside.transport(self._nic).uet
        dropped = sum(count for reason, count in stats.drops.items() if reason not in NO_ARRIVALS)
        taken = sum(getattr(stats, name) for name in RECEIVED) + sum(stats.trims.values()) + uet.controls_received
        taken += anatomy.held_for_contexts(self._nic)
        if self._received != taken + dropped:
            what = f"{self._received} frames came, {taken} taken, {dropped} dropped"
            raise self._broken("conservation", at_ns, what)
