"""The ports of a NIC in a lossless fabric: eight classes each, of which the neighbour may pause any.

Owns which class a packet of this NIC belongs to (its DSCP says so), when a pause leaves a port no room for data, and
what pauses of the neighbour do. `mrcfabric.class_egress` has the queues, `mrcfabric.wire.pfc` the frames, and
`nicd.core.ports` all that does not depend on classes.

While the class of data is paused the port has no room, so that no packet is made for it and the QP may choose another
port. Acknowledgements of another class go on. The end of a pause is an instant like a departure: it makes room.
"""

from collections.abc import Callable
from typing import TypeAlias

from mrcfabric.class_egress import ClassEgress
from mrcfabric.class_egress_config import CLASSES, ClassEgressConfig
from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.glance import PauseGlance, pause_glances
from mrcfabric.rng import Rng
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.dscp import Dscp, dscp_of, traffic_class_of_dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import PfcFrame, parse
from nicd.core.credit_ports import CreditPorts
from nicd.core.onchip import Receive
from nicd.core.ports import Ports
from nicd.core.settings import NicConfig
from nicd.core.stats import TAKEN

Heard: TypeAlias = Callable[[Instant, int, PfcFrame], None]


class ClassPorts(Ports):
    """All ports of a NIC, each with eight classes."""

    __slots__ = ("_class_of", "_classed")

    def __init__(
        self, configs: tuple[ClassEgressConfig, ...], queue_bytes_max: int, dscp: Dscp, *seed: str
    ) -> None:  # fmt: skip
        self._classed: list[ClassEgress] = []  # `egress`, by its kind
        super().__init__(configs, queue_bytes_max, *seed)
        self._class_of = traffic_class_of_dscp(dscp)

    def _build(self, config: EgressConfig, port: int, rng: Rng) -> ClassEgress:
        assert isinstance(config, ClassEgressConfig)
        self._classed.append(ClassEgress(config, port, rng))
        return self._classed[port]

    def offer(self, now: Instant, port: int, packet: bytearray, control: bool) -> None:
        """Put a packet into a port's queue of its class. A port without carrier drops it without a word."""
        if self.on_offer is not None:
            self.on_offer(now, port, packet, control)
        egress = self._classed[port]
        egress.offer(now, packet, self._class_of[dscp_of(packet)], self.out)
        if self.tracking:
            self._note(now, port, egress.next_departure_ns)
            self.next_ns = min(self._departures)

    def pause(self, now: Instant, port: int, frame: PfcFrame) -> None:
        """The neighbour at a port pauses classes, each for its quanta at the port's own rate, or lets them go on."""
        egress = self._classed[port]
        for cls in range(CLASSES):
            if frame.enabled >> cls & 1:
                egress.pause(now, cls, now + egress.config.quanta_ns(frame.quanta[cls]), self.out)
        if self.tracking:
            self._note(now, port, egress.next_departure_ns)
            self.next_ns = min(self._departures)

    def send_control(self, now: Instant, port: int, frame: ControlFrame) -> None:
        """Send a link control frame before all that waits at a port. A port without carrier drops it without a word."""
        egress = self._classed[port]
        egress.send_control(now, frame, self.out)
        if self.tracking:
            self._note(now, port, egress.next_departure_ns)
            self.next_ns = min(self._departures)

    def data_class(self, port: int) -> int:
        """The class of this NIC's data."""
        return self._classed[port].config.data_class

    @property
    def pause_event_ns(self) -> int:
        """Pauses that add up to so much are told of; of all ports alike."""
        return self._classed[0].config.pause_event_ns if self._classed else 0

    def pause_ns(self, port: int, quanta: int) -> int:
        """How long so many quanta last at a port's rate."""
        return self._classed[port].config.quanta_ns(quanta)

    def pause_glances(self, now: Instant) -> list[PauseGlance]:
        return pause_glances(self._classed, now)

    def track(self, now: Instant) -> None:
        """A QP has data to send from `now` on: bring every port up to date."""
        self.tracking = True
        self.room = 0
        for port, egress in enumerate(self._classed):
            self._note(now, port, egress.run(now - 1, self.out))
        self.next_ns = min(self._departures)

    def depart(self, now: Instant) -> None:
        """Carry out the departures and the ends of pauses of the instant `next_ns`, in the order of ports."""
        departures = self._departures
        while self.next_ns <= now:
            port = departures.index(self.next_ns)
            self._note(now, port, self._classed[port].run(now, self.out))
            self.next_ns = min(departures)

    def _note(self, now: Instant, port: int, departure_ns: Instant) -> None:
        """Note when a port has its next departure or end of a pause, and whether it has room for data."""
        egress = self._classed[port]
        paused_until = egress.paused_until[egress.config.data_class]
        bit = 1 << port
        if paused_until > now:
            self.room &= ~bit
            departure_ns = min(departure_ns, paused_until)
        elif egress.data_bytes < self._queue_bytes_max:
            self.room |= bit & self.carrier
        else:
            self.room &= ~bit
        self._departures[port] = departure_ns


class PauseReceiver:
    """Takes the pauses of neighbours out of what comes in, and passes everything else on."""

    __slots__ = ("_heard", "_onward", "_ports")

    def __init__(self, ports: ClassPorts, onward: Receive, heard: Heard) -> None:
        """`heard`: is told of each pause that a port obeys."""
        self._ports = ports
        self._onward = onward
        self._heard = heard

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """A packet or a link control frame from a port; a frame that is no good pause goes on, to be dropped there."""
        if isinstance(packet, ControlFrame) and self._ports.carrier >> port & 1:
            frame = parse(packet)
            if frame is not None:
                self._ports.pause(now, port, frame)
                self._heard(now, port, frame)
                return TAKEN
        return self._onward(now, port, packet)


def ports_of(config: NicConfig, queue_bytes_max: int) -> Ports:
    """The ports of a NIC, with eight classes or VLs if their configurations have them. ConfigError for a mixture."""
    credited = tuple(port for port in config.ports if isinstance(port, CreditEgressConfig))
    if credited and len(credited) == len(config.ports):
        return CreditPorts(credited, queue_bytes_max, config.seed, config.name)
    classed = tuple(port for port in config.ports if isinstance(port, ClassEgressConfig))
    if not classed and not credited:
        return Ports(config.ports, queue_bytes_max, config.seed, config.name)
    if len(classed) != len(config.ports):
        raise ConfigError(f"{config.name}.ports", "some have eight classes, some have two", "all alike")
    return ClassPorts(classed, queue_bytes_max, config.dscp, config.seed, config.name)
