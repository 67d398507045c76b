"""Where every packet went: packets are conserved over NICs, switches and links.

Per node and step: what came in equals what was taken plus what was dropped by a named reason; what a port was offered
equals what left it, what waits and what it dropped. Over the fabric: what nodes sent equals what nodes received, what
is under way and what met a dead node. Counters are compared with what the wrapper itself saw pass.
"""

from collections.abc import Sequence
from typing import Any

from mrcfabric.egress import Egress
from mrcfabric.impairment import LOSS_REASONS
from mrcfabric.node import Input, Transmit
from mrcfabric.units import Instant
from swarm import anatomy
from swarm.invariant import InvariantError
from swarm.watched import frames_in
from switchd.core.switch import Switch

QUEUE_DROPS = ("data_full", "control_full", "trim_full")


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


def departures(egress: Egress) -> int:
    """Packets that went on from a port: neither lost nor held back by a fault of its link, copies included."""
    kept = egress.held + sum(egress.drops[reason] for reason in LOSS_REASONS)
    return egress.packets + egress.touched["duplicated"] - kept


def reached(egress: Egress) -> int:
    """Packets that reached a port: departed, waiting, or dropped by its queues."""
    data, _, control, _ = anatomy.waiting(egress)
    return egress.packets + data + control + sum(egress.drops[reason] for reason in QUEUE_DROPS)


def check_queues(name: str, at_ns: Instant, egress: Egress) -> None:
    """The gauges of a port's queues say what is there, and stay inside their bounds."""
    _, data, _, control = anatomy.waiting(egress)
    config = egress.config
    if (data, control) != (egress.data_bytes, egress.control_bytes):
        raise InvariantError("conservation", name, at_ns, f"port {egress.port}: gauges of waiting bytes are wrong")
    for kind, size, most in (("data", data, config.data_bytes_max), ("control", control, config.control_bytes_max)):
        if size > most:
            raise InvariantError("bounds", name, at_ns, f"port {egress.port}: {size} {kind} bytes wait, {most} may")


class PortLedger:
    """The books of all ports of a node, added up anew where something has moved."""

    def __init__(self, name: str, ports: Sequence[Egress]) -> None:
        self._name = name
        self._ports = ports
        self._seen: list[tuple[int, ...]] = [()] * len(ports)
        self.reached = [0] * len(ports)
        """Packets that reached each port."""
        self.departed = [0] * len(ports)
        """Packets that went on from each port."""

    def check(self, at_ns: Instant) -> None:
        """Bring the sums up to date. Raises InvariantError for gauges that are wrong and queues that are too long."""
        for number, egress in enumerate(self._ports):
            drops = egress.drops
            seen = (
                egress.packets, egress.held, egress.data_bytes, egress.control_bytes,
                drops["data_full"], drops["control_full"], drops["trim_full"],
            )  # fmt: skip
            # An offer changes the queues or a drop, a departure the packets, a release what is held back.
            if seen != self._seen[number]:
                self._seen[number] = seen
                self.reached[number] = reached(egress)
                self.departed[number] = departures(egress)
                check_queues(self._name, at_ns, egress)


class SwitchLedger:
    """The books of one switch."""

    def __init__(self, switch: Switch, ledger: Ledger) -> None:
        self._switch = switch
        self._ledger = ledger
        self._ports = PortLedger(switch.name, [port for port in switch.egress if isinstance(port, Egress)])
        self._received = 0
        self._sent = 0

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Frames come in."""
        frames = frames_in(inputs)
        self._received += frames
        self._ledger.received += frames

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Received = dropped + reached a port; departed = returned, port by port."""
        switch = self._switch
        self._sent += len(transmits)
        self._ledger.sent += len(transmits)
        if switch.received != self._received:
            what = f"counts {switch.received} packets received, {self._received} came"
            raise InvariantError("counters", switch.name, at_ns, what)
        self._ports.check(at_ns)
        through = sum(self._ports.reached)
        dropped = sum(switch.drops.values())
        if self._received != through + dropped:
            what = f"{self._received} received, {dropped} dropped, {through} at ports"
            raise InvariantError("conservation", switch.name, at_ns, what)
        left = sum(self._ports.departed)
        if left != self._sent:
            raise InvariantError("conservation", switch.name, at_ns, f"{left} packets departed, {self._sent} sent")
