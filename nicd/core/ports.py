"""The ports of one NIC (number = plane): their egress queues, their carrier, and which have room for data.

Owns when a port takes another data packet. The queues are kept shallow, so that the EV of a packet is chosen at the
last moment and slow ports get fewer packets (MRC 1.0: selection by a bitmap of free ports). The scheduler decides which
QP sends; `mrcfabric.egress` decides how a queue drains. `nicd.core.class_ports` has the ports of a lossless fabric.

While no QP has data to send, nothing depends on departures and they are computed late (`tracking` False). While a QP
has data, each departure is an instant of its own, because it makes room.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.egress import Egress
from mrcfabric.egress_config import EgressConfig
from mrcfabric.egress_queues import EgressQueues
from mrcfabric.glance import PauseGlance
from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.layout import TIMESTAMP_MASK, TIMESTAMP_TICK_NS

_PROBES_BYTES_MAX: Final = 256 << 10
"""With more than so many bytes of data waiting at a port, it drops probes: it is paused, and they would leave when what
they ask is long known."""
_NO_CARRIER: Final = Impairment(up=False)


class Ports:
    """All ports of a NIC. `out` collects transmits and is exchanged by the NIC at every advance."""

    __slots__ = (
        "_departures", "_faulty", "_impairments", "_queue_bytes_max", "carrier", "count", "egress", "next_ns",
        "on_offer", "out", "room", "tracking",
    )  # fmt: skip

    def __init__(self, configs: tuple[EgressConfig, ...], queue_bytes_max: int, *seed: str) -> None:
        self.count = len(configs)
        self.egress: list[EgressQueues] = [
            self._build(config, port, Rng(*seed, "port", port)) for port, config in enumerate(configs)
        ]
        self.out: list[Transmit] = []
        self.carrier = (1 << self.count) - 1
        """Bit p: port p has carrier."""
        self.room = self.carrier
        """Bit p: port p has carrier and takes a data packet now; exact while `tracking`."""
        self.tracking = False
        self.next_ns: Instant = NEVER
        """While tracking: the next departure of any port."""
        self._departures = [NEVER] * self.count
        self._impairments = [HEALTHY] * self.count
        self._faulty: dict[EgressQueues, None] = {}  # ports that have ever had a fault
        self.on_offer: Callable[[Instant, int, bytearray, bool], None] | None = None
        """Is told of each packet before it is put into a queue. For whoever checks a core; None: nobody."""
        self._queue_bytes_max = queue_bytes_max

    def _build(self, config: EgressConfig, port: int, rng: Rng) -> EgressQueues:
        """The sending end of one port."""
        return Egress(config, port, rng)

    def offer(self, now: Instant, port: int, packet: bytearray, control: bool) -> None:
        """Put a packet into a port's queue. A port without carrier drops it without a word."""
        if self.on_offer is not None:
            self.on_offer(now, port, packet, control)
        egress = self.egress[port]
        egress.offer(now, packet, control, self.out)
        if self.tracking:
            start = egress.busy_until
            # A packet that a fault holds back may go on before this start.
            if start < self._departures[port]:
                self._departures[port] = start
                if start < self.next_ns:
                    self.next_ns = start
            if not control and egress.data_bytes >= self._queue_bytes_max:
                self.room &= ~(1 << port)

    def offer_probe(self, now: Instant, port: int, packet: bytearray) -> None:
        """Put a probe of the data class into a port's queue, which drops it if much waits there."""
        egress = self.egress[port]
        if egress.data_bytes <= _PROBES_BYTES_MAX:
            self.offer(now, port, packet, False)
            return
        if self.on_offer is not None:
            self.on_offer(now, port, packet, False)
        egress.refuse(packet)

    def stamp(self, now: Instant, port: int) -> int:
        """The time stamp of a packet made now: when its port can begin with it, not how long it waits for that."""
        # MRC 1.0 7.5, TSETH: waiting for one's own port is no part of a round trip.
        return max(now, self.egress[port].busy_until) // TIMESTAMP_TICK_NS & TIMESTAMP_MASK

    def track(self, now: Instant) -> None:
        """A QP has data to send from `now` on: bring every port up to date."""
        self.tracking = True
        self.room = 0
        for port, egress in enumerate(self.egress):
            self._departures[port] = egress.run(now - 1, self.out)
            if egress.data_bytes < self._queue_bytes_max:
                self.room |= 1 << port
        self.room &= self.carrier
        self.next_ns = min(self._departures)

    def depart(self, now: Instant) -> None:
        """Carry out the departures of the instant `next_ns`, in the order of ports."""
        departures = self._departures
        least = NEVER
        for port, at_ns in enumerate(departures):
            if at_ns <= now:
                egress = self.egress[port]
                departures[port] = at_ns = egress.run(now, self.out)
                if egress.data_bytes < self._queue_bytes_max:
                    self.room |= 1 << port & self.carrier
            if at_ns < least:
                least = at_ns
        self.next_ns = least

    def run(self, until: Instant) -> None:
        """Carry out every departure up to and including `until`; only while not tracking."""
        out = self.out
        for egress in self.egress:
            if egress.busy_until <= until or egress.next_release_ns <= until:
                egress.run(until, out)

    def pause_glances(self, now: Instant) -> list[PauseGlance]:
        """How its neighbours pause it; ports with two classes cannot be paused."""
        return []

    def next_departure_ns(self) -> Instant:
        """When the next packet of any port starts, or one that a fault holds back goes on; NEVER without one."""
        if self.tracking:
            return self.next_ns
        least = min(egress.next_start_ns for egress in self.egress)
        for egress in self._faulty:
            least = min(least, egress.next_release_ns)
        return least

    def set_carrier(self, now: Instant, port: int, up: bool) -> bool:
        """Set the carrier of a port; False when nothing changes. A port that loses carrier drops what waits on it."""
        bit = 1 << port
        if bool(self.carrier & bit) == up:
            return False
        self.carrier ^= bit
        self._apply(now, port)
        return True

    def set_impairment(self, now: Instant, port: int, impairment: Impairment) -> None:
        """Set the faults of a port's transmit direction. Raises RefusedError for faults that the port cannot have."""
        self.egress[port].check_impairment(impairment)
        self._impairments[port] = impairment
        self._apply(now, port)

    def _apply(self, now: Instant, port: int) -> None:
        up = self.carrier >> port & 1
        self._faulty[self.egress[port]] = None
        self.egress[port].set_impairment(now, self._impairments[port] if up else _NO_CARRIER, self.out)
        if self.tracking:
            self.track(now)
