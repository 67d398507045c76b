"""The account of one RC NIC: what it was offered, sent and received, compared with its own counters at every step.

Owns conservation at such a NIC and the agreement of its counters with the packets themselves, which are read here once
more. `swarm.nic_account` does the same for MRC.
"""

from typing import Any, Final, NamedTuple

from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.units import Instant
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import parse
from mrcfabric.wire.roce import rc_peeker, read_rc_aeth, read_selective_aeth
from mrcfabric.wire.roce_layout import CNP, NAK_SEQUENCE, RC_ACK, RC_WRITE_ONLY_IMM
from nicd.core.class_ports import ClassPorts
from nicd.core.events import Completion, Retransmit
from nicd.core.nic import Nic
from nicd.core.rc.rc_stats import OUT_OF_SEQUENCE
from nicd.core.rc.responder import MEMORY, MISMATCH
from swarm import anatomy
from swarm.invariant import InvariantError
from swarm.ledger import Ledger, PortLedger
from swarm.systems import inside

NO_ARRIVALS: Final = frozenset({OUT_OF_SEQUENCE, MISMATCH, MEMORY, "psn_window", "ack_of_unsent", "no_port"})
"""Drop reasons that are counted beside the arrival of a packet, or without one."""
RECEIVED: Final = ("data_received", "acks_received", "nacks_received")


class Seen(NamedTuple):
    """A data packet that a NIC offered to a port."""

    port: int
    address: bytes
    """Where it goes."""
    qpn: int
    psn: int
    """24 bits."""
    size: int


class RcAccount:
    """Counts kept beside one NIC."""

    def __init__(self, nic: Nic, ledger: Ledger, stepwise: bool) -> None:
        self._nic = nic
        self._stepwise = stepwise
        self._ledger = ledger
        self._board = inside.board(nic)
        settings = nic.config.settings
        selective = settings.rc_recovery == "selective"
        self._peek = rc_peeker(selective=selective, options=nic.config.options)
        self._read_aeth: Any = read_selective_aeth if selective else read_rc_aeth
        self._ports = PortLedger(nic.name, self._board.ports.egress)
        self._offered = [0] * len(nic.config.ports)
        self._counts = dict.fromkeys(("acks_sent", "nacks_sent", "access_naks_sent", "cnps_sent"), 0)
        self._data = self._payload = 0
        self._sent = self._received = self._completions = 0
        self._pauses: list[int] = []
        self._obeyed = 0
        self._judged: dict[str, int] = {}

    def offered(self, port: int, packet: bytearray) -> Seen | None:
        """A packet goes into a port's queue; what it is if it has data."""
        reason, _, opcode, qpn, psn, _, start, size, _, _ = self._peek(packet)
        if reason is not None:
            raise InvariantError("packets", self._nic.name, self._nic.now_ns, f"sends what nobody takes: {reason}")
        self._offered[port] += 1
        if opcode == RC_ACK:
            syndrome = self._read_aeth(packet, start)[0]
            name = "nacks_sent" if syndrome == NAK_SEQUENCE else "access_naks_sent"
            self._counts["acks_sent" if syndrome < NAK_SEQUENCE else name] += 1
        elif opcode == CNP:
            self._counts["cnps_sent"] += 1
        else:
            assert opcode <= RC_WRITE_ONLY_IMM
            self._data += 1
            self._payload += size
            inner = 0 if packet[6] == 17 else 40
            return Seen(port, bytes(packet[inner + 24 : inner + 40]), qpn, psn, size)
        return None

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Frames come in; whether a pause is obeyed is known once commands of the step are done."""
        self._pauses = []
        for _, rank, port, _, frame in inputs:
            if rank == Rank.FRAME:
                self._received += 1
                self._ledger.received += 1
                if isinstance(frame, ControlFrame) and parse(frame) is not None:
                    self._pauses.append(port)

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
        own = self._own_frames()
        if left != self._sent:
            raise self._broken("conservation", at_ns, f"{left} packets departed ({own} pauses), {self._sent} sent")
        self._check_sent(at_ns)
        if self._stepwise:
            self._check_received(at_ns)

    def _broken(self, invariant: str, at_ns: Instant, what: str) -> InvariantError:
        return InvariantError(invariant, self._nic.name, at_ns, what)

    def _own_frames(self) -> int:
        return sum(getattr(port, "control_frames", 0) for port in self._board.ports.egress)

    def _check_sent(self, at_ns: Instant) -> None:
        stats, rc = self._board.stats, inside.transport(self._nic).rc
        told = {
            "data_packets": stats.data_packets, "payload_bytes": stats.payload_bytes, "completions": stats.completions,
            "packets_lost": stats.packets_lost, "acks_sent": stats.acks_sent, "nacks_sent": stats.nacks_sent,
            "access_naks_sent": rc.access_naks_sent, "cnps_sent": rc.cnps_sent,
        }  # fmt: skip
        seen = {
            "data_packets": self._data, "payload_bytes": self._payload, "completions": self._completions,
            "packets_lost": sum(self._judged.values()), **self._counts,
        }  # fmt: skip
        if told != seen:
            raise self._broken("counters", at_ns, f"{told}, seen {seen}")
        # What was to be sent again for one cause may be sent for the next: only the sums say something.
        if (again := sum(stats.retransmits.values())) > stats.packets_lost:
            raise self._broken("retransmission", at_ns, f"{again} packets sent again, {stats.packets_lost} judged lost")

    def _check_received(self, at_ns: Instant) -> None:
        stats, rc, ports = self._board.stats, inside.transport(self._nic).rc, self._board.ports
        if isinstance(ports, ClassPorts):
            self._obeyed += sum(ports.carrier >> port & 1 for port in self._pauses)
        self._pauses = []
        dropped = sum(count for reason, count in stats.drops.items() if reason not in NO_ARRIVALS)
        taken = sum(getattr(stats, name) for name in RECEIVED) + rc.cnps_received + self._obeyed
        taken += anatomy.held_for_contexts(self._nic)
        if self._received != taken + dropped:
            what = f"{self._received} frames came, {taken} taken, {dropped} dropped"
            raise self._broken("conservation", at_ns, what)
