"""Pauses as two neighbours see them: what a node heard it obeys, and what it says makes sense.

A model of its own follows the frames that come in: until when each class of each port is paused. At every instant the
port's own account says the same, so no class is paused for longer than the quanta of the last frame, nor for longer
than a watchdog allows; and no packet of a paused class begins. What a node says nests: XON only after XOFF; while XOFF
lasts it is repeated before its quanta run out, and a switch repeats it no sooner than at half of them, but for what a
frame waits behind packets.

Ports on whose link a fault has ever been in force are left out of what is said about sending: it loses frames.
"""

from typing import Any, Final

from mrcfabric.class_egress import ClassEgress
from mrcfabric.class_egress_config import CLASSES
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.units import Instant, serialization_ns
from mrcfabric.wire.dscp import Dscp, dscp_of, traffic_class_of_dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import parse
from nicd.core.class_ports import ClassPorts
from nicd.core.nic import Nic
from swarm.invariant import InvariantError
from swarm.systems import inside
from switchd.core.headroom import PFC_WIRE_BYTES
from switchd.core.lossless import LosslessSwitch

_NOTHING: Final = -1


class Pauses:
    """The checks of one node with ports of eight classes."""

    def __init__(self, node: Nic | LosslessSwitch, dscp: Dscp, packet_bytes: int) -> None:
        """`packet_bytes`: the largest packet on the wire, framing included."""
        self._node = node
        self._class_of = traffic_class_of_dscp(dscp)
        ports = inside.board(node).ports.egress if isinstance(node, Nic) else node.egress
        self._ports = [port for port in ports if isinstance(port, ClassEgress)]
        self._packet_bytes = packet_bytes
        pairs = len(self._ports) * CLASSES
        self._until: list[Instant] = [0] * pairs
        """Until when each class is paused, by what has come in."""
        self._asked: list[Instant] = [_NOTHING] * pairs
        """When the last XOFF reached the neighbour; `_NOTHING`: an XON has followed, or there was none."""
        self._heard: list[tuple[Instant, int, ControlFrame]] = []
        self._watchdog_ns = 0
        if isinstance(node, LosslessSwitch) and node.config.lossless is not None:
            self._watchdog_ns = node.config.lossless.watchdog_ns
        self._since: dict[int, Instant] = {}
        """Classes that are paused, and since when without a break."""

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Frames come in; whether they are obeyed is known once commands of the step are done."""
        self._heard = [
            (entry[0], entry[2], entry[4])
            for entry in inputs
            if entry[1] == Rank.FRAME and isinstance(entry[4], ControlFrame)
        ]
        for pair in [pair for pair in self._since if self._paused_until(pair) < at_ns]:
            del self._since[pair]

    def _paused_until(self, pair: int) -> Instant:
        port, cls = divmod(pair, CLASSES)
        return self._ports[port].paused_until[cls]

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Raises InvariantError."""
        for when_ns, port, frame in self._heard:
            self._hear(when_ns, port, frame)
        if self._heard:
            self._agree(at_ns)
        if self._watchdog_ns:
            self._bitten(at_ns)
        for port, arrival_ns, packet in transmits:
            egress = self._ports[port]
            if inside.ever_broken(egress):
                continue
            if isinstance(packet, ControlFrame):
                self._said(at_ns, egress, arrival_ns, packet)
            else:
                self._started(at_ns, port, self._class_of[dscp_of(packet)])

    def _broken(self, at_ns: Instant, pair: int, what: str) -> InvariantError:
        port, cls = divmod(pair, CLASSES)
        return InvariantError("pauses", self._node.name, at_ns, f"port {port} class {cls}: {what}")

    def _obeys(self, port: int, cls: int) -> bool:
        node = self._node
        if isinstance(node, Nic):
            ports = inside.board(node).ports
            return isinstance(ports, ClassPorts) and bool(ports.carrier >> port & 1)
        return node.forwarding and cls in node.buffer.config.lossless

    def _hear(self, at_ns: Instant, port: int, frame: ControlFrame) -> None:
        said = parse(frame)
        if said is None:
            return
        for cls in range(CLASSES):
            if said.enabled >> cls & 1 and self._obeys(port, cls):
                self._until[port * CLASSES + cls] = at_ns + self._ports[port].config.quanta_ns(said.quanta[cls])

    def _ignores(self, port: int) -> bool:
        """The watchdog has had a word in what this port obeys."""
        return isinstance(self._node, LosslessSwitch) and inside.storms(self._node, port) > 0

    def _agree(self, at_ns: Instant) -> None:
        for port, egress in enumerate(self._ports):
            if self._ignores(port):
                continue
            for cls, until_ns in enumerate(egress.paused_until):
                told_ns = self._until[port * CLASSES + cls]
                if max(until_ns, at_ns) != max(told_ns, at_ns):
                    what = f"paused until {until_ns} ns, the neighbour asked for {told_ns}"
                    raise self._broken(at_ns, port * CLASSES + cls, what)

    def _bitten(self, at_ns: Instant) -> None:
        """No class stands still for longer than the watchdog allows."""
        for port in {port for _, port, _ in self._heard}:
            for pair in range(port * CLASSES, port * CLASSES + CLASSES):
                if self._paused_until(pair) > at_ns:
                    self._since.setdefault(pair, at_ns)
        for pair, since_ns in self._since.items():
            if self._paused_until(pair) > at_ns and at_ns - since_ns >= self._watchdog_ns:
                what = f"paused since {since_ns} ns, and the watchdog has {self._watchdog_ns} ns"
                raise self._broken(at_ns, pair, what)

    def _started(self, at_ns: Instant, port: int, cls: int) -> None:
        pair = port * CLASSES + cls
        if self._until[pair] > at_ns and not self._ignores(port):
            raise self._broken(at_ns, pair, f"a packet starts, and the class is paused until {self._until[pair]} ns")

    def _said(self, at_ns: Instant, egress: ClassEgress, arrival_ns: Instant, frame: ControlFrame) -> None:
        said = parse(frame)
        if said is None:
            raise InvariantError("pauses", self._node.name, at_ns, f"port {egress.port}: a frame that is no pause")
        for cls in range(CLASSES):
            if said.enabled >> cls & 1:
                self._in_turn(at_ns, egress, cls, said.quanta[cls], arrival_ns)

    def _in_turn(self, at_ns: Instant, egress: ClassEgress, cls: int, quanta: int, arrival_ns: Instant) -> None:
        pair = egress.port * CLASSES + cls
        last_ns, self._asked[pair] = self._asked[pair], arrival_ns if quanta else _NOTHING
        if last_ns == _NOTHING:
            if not quanta:
                raise self._broken(at_ns, pair, "XON, and the neighbour was not paused")
            return
        if not quanta:
            return
        gap_ns, whole_ns = arrival_ns - last_ns, egress.config.quanta_ns(quanta)
        if gap_ns > whole_ns and not self._stood_still:
            raise self._broken(at_ns, pair, f"XOFF {gap_ns} ns after the last, which lasted {whole_ns} ns")
        if isinstance(self._node, LosslessSwitch):
            frames = CLASSES * PFC_WIRE_BYTES
            wait_ns = serialization_ns(self._packet_bytes + frames, egress.config.rate_bps)
            if gap_ns < whole_ns // 2 - wait_ns and not self._stood_still:
                raise self._broken(at_ns, pair, f"XOFF again after {gap_ns} ns")

    _stood_still = False
    """The switch has stood still: it repeats its pauses when it goes on."""

    def stand_still(self) -> None:
        """A fault stops this switch at some time."""
        self._stood_still = True
