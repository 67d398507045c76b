"""Where every packet went: packets are conserved over NICs, switches and links.

Per node and step: what came in equals what was taken plus what was dropped by a named reason; what a port was offered
equals what left it, what waits and what it dropped. Over the fabric: what nodes sent equals what nodes received, what
is under way and what met a dead node. Counters are compared with what the wrapper itself saw pass.
"""

from collections.abc import Sequence
from typing import Any

from mrcfabric.class_egress import ClassEgress
from mrcfabric.egress_queues import REFUSALS, EgressQueues
from mrcfabric.impairment import LOSS_REASONS
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire import srh
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import parse
from swarm import anatomy
from swarm.invariant import InvariantError
from switchd.core.lossless import LosslessSwitch
from switchd.core.switch import Switch


class Ledger:
    """The sums of a fabric over all incarnations of its nodes."""

    def __init__(self) -> None:
        self.sent = 0
        """Transmits that nodes returned."""
        self.received = 0
        """Frames that nodes were given."""

    def balance(self, at_ns: Instant, conjured: int, under_way: int, vanished: int) -> None:
        """Raises InvariantError unless sent + conjured = received + under way + vanished at dead nodes."""
        left = self.sent + conjured
        right = self.received + under_way + vanished
        if left != right:
            what = f"{self.sent} sent + {conjured} copies, {self.received} received, {under_way} under way"
            raise InvariantError(
                "conservation", "fabric", at_ns, f"{what}, {vanished} at dead nodes: {left - right} missing"
            )


def departures(egress: EgressQueues) -> int:
    """Frames that went on from a port: neither lost nor held back by a fault of its link, copies included."""
    kept = egress.held + sum(egress.drops[reason] for reason in LOSS_REASONS)
    frames = egress.control_frames if isinstance(egress, ClassEgress) else 0
    return egress.packets + frames + egress.touched["duplicated"] - kept


def reached(egress: EgressQueues) -> int:
    """Packets that reached a port: departed, waiting, or dropped by its queues."""
    data, _, control, _ = anatomy.waiting(egress)
    return egress.packets + data + control + sum(egress.drops[reason] for reason in REFUSALS)


def reached_bytes(egress: EgressQueues) -> int:
    """Their bytes, as they were when they came."""
    _, data, _, control = anatomy.waiting(egress)
    return egress.bytes + data + control + egress.refused_bytes


def check_queues(name: str, at_ns: Instant, egress: EgressQueues) -> None:
    """The gauges of a port's queues say what is there, and stay inside their bounds."""
    _, data, _, control = anatomy.waiting(egress)
    if (data, control) != (egress.data_bytes, egress.control_bytes):
        raise InvariantError("conservation", name, at_ns, f"port {egress.port}: gauges of waiting bytes are wrong")
    for kind, size, most in _bounds(egress):
        if size > most:
            raise InvariantError("bounds", name, at_ns, f"port {egress.port}: {size} {kind} bytes wait, {most} may")


def _bounds(egress: EgressQueues) -> list[tuple[str, int, int]]:
    """(what, bytes that wait, bytes that may) of each queue."""
    if isinstance(egress, ClassEgress):
        limits = enumerate(zip(egress.class_bytes, egress.config.limits, strict=True))
        return [(f"class {cls}", size, most) for cls, (size, most) in limits]
    config = egress.config
    return [("data", egress.data_bytes, config.data_bytes_max),
            ("control", egress.control_bytes, config.control_bytes_max)]  # fmt: skip


class PortLedger:
    """The counts of all ports of a node, added up anew where something has moved."""

    def __init__(self, name: str, ports: Sequence[EgressQueues]) -> None:
        self._name = name
        self._ports = ports
        self._seen: list[tuple[int, ...]] = [()] * len(ports)
        self.reached = [0] * len(ports)
        """Packets that reached each port."""
        self.departed = [0] * len(ports)
        """Frames that went on from each port."""
        self.bytes = [0] * len(ports)
        """Bytes of the packets that reached each port."""

    def check(self, at_ns: Instant) -> None:
        """Bring the sums up to date. Raises InvariantError for gauges that are wrong and queues that are too long."""
        for number, egress in enumerate(self._ports):
            drops = egress.drops
            frames = egress.control_frames if isinstance(egress, ClassEgress) else 0
            seen = (
                egress.packets, frames, egress.held, egress.data_bytes, egress.control_bytes,
                *(drops[reason] for reason in REFUSALS),
            )  # fmt: skip
            # An offer changes the queues or a drop, a departure the packets, a release what is held back.
            if seen != self._seen[number]:
                self._seen[number] = seen
                self.reached[number] = reached(egress)
                self.departed[number] = departures(egress)
                self.bytes[number] = reached_bytes(egress)
                check_queues(self._name, at_ns, egress)


class SwitchLedger:
    """The account of one switch."""

    def __init__(self, switch: Switch, ledger: Ledger) -> None:
        self._switch = switch
        self._ledger = ledger
        self._ports = PortLedger(switch.name, switch.egress)
        self._received = 0
        self._bytes = 0
        self._sent = 0
        self._pending: list[ControlFrame] = []
        self._lost_bytes = 0
        self._rewrites = False
        """A packet came with a segment routing header, which the switch may take off."""
        anatomy.look_at_losses(switch, self._lost)

    def _lost(self, packet: Buffer) -> None:
        self._lost_bytes += len(packet)

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Frames come in; whether the switch stands still is known once commands of the step are done."""
        self._pending = []
        for _, rank, _, _, frame in inputs:
            if rank == Rank.FRAME:
                self._ledger.received += 1
                if isinstance(frame, ControlFrame) and parse(frame) is not None:
                    self._pending.append(frame)
                else:
                    self._received += 1
                    self._bytes += len(frame)
                    self._rewrites = self._rewrites or srh.follows(frame)

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Received = dropped + reached a port, in packets and in bytes; departed = returned."""
        switch = self._switch
        self._sent += len(transmits)
        self._ledger.sent += len(transmits)
        if not (isinstance(switch, LosslessSwitch) and switch.forwarding):
            # A pause that is not obeyed is a packet like others, and lost.
            self._received += len(self._pending)
            self._bytes += sum(map(len, self._pending))
        if switch.received != self._received:
            what = f"counts {switch.received} packets received, {self._received} came"
            raise InvariantError("counters", switch.name, at_ns, what)
        self._ports.check(at_ns)
        through = sum(self._ports.reached)
        dropped = sum(switch.drops.values())
        if self._received != through + dropped:
            what = f"{self._received} received, {dropped} dropped, {through} at ports"
            raise InvariantError("conservation", switch.name, at_ns, what)
        if self._bytes != sum(self._ports.bytes) + self._lost_bytes and not self._rewrites:
            what = f"{self._bytes} bytes received, {self._lost_bytes} dropped, {sum(self._ports.bytes)} at ports"
            raise InvariantError("conservation", switch.name, at_ns, what)
        left = sum(self._ports.departed)
        if left != self._sent:
            raise InvariantError("conservation", switch.name, at_ns, f"{left} packets departed, {self._sent} sent")
