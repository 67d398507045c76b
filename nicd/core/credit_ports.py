"""The ports of a NIC on InfiniBand: VLs and credits on each.

Owns what comes in before the transport sees it: flow control packets are obeyed, and a packet takes blocks of the
port's buffer until the transport has dealt with it, which is at once, and `nicd.core.credit_holder` lets them go.
`mrcfabric.credit_egress` has the queues and the credits, `nicd.core.ports` all that does not depend on them.

While packets of the NIC's data wait for credit the port has no room, so that no packet is made for it.
"""

from collections.abc import Callable
from typing import TypeAlias

from mrcfabric.credit_egress import CreditEgress
from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.egress_config import EgressConfig
from mrcfabric.glance import PauseGlance, credit_glances
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.flow_control import FlowControl, parse
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import LEAST, MANAGEMENT_VL, blocks_of, vl_of
from mrcfabric.wire.smp import is_management
from nicd.core.onchip import Receive
from nicd.core.ports import Ports
from nicd.core.stats import TAKEN

OVERRUN = "credit_overrun"
NO_VL = "no_vl"
CREDIT_DROPS = (NO_VL, OVERRUN)
"""Why a packet gets no further than the port: there is no such VL; its sender had no credit for it."""


Done: TypeAlias = Callable[[Instant, int, int, int, int], None]
"""Takes (instant, port, VL, blocks, bytes) of a packet that the transport has dealt with."""


class CreditPorts(Ports):
    """All ports of a NIC, each with VLs."""

    __slots__ = ("_credited",)

    def __init__(self, configs: tuple[CreditEgressConfig, ...], queue_bytes_max: int, *seed: str) -> None:
        self._credited: list[CreditEgress] = []  # `egress`, by its kind
        super().__init__(configs, queue_bytes_max, *seed)

    def _build(self, config: EgressConfig, port: int, rng: Rng) -> CreditEgress:
        assert isinstance(config, CreditEgressConfig)
        self._credited.append(CreditEgress(config, port, rng))
        return self._credited[port]

    def begin(self, now: Instant) -> None:
        """The ports live from `now` on."""
        for egress in self._credited:
            egress.begin(now)

    def vls(self, port: int) -> int:
        """Data VLs of a port."""
        return self._credited[port].config.vls

    def data_vl(self, port: int) -> int:
        """The VL of this NIC's data."""
        return self._credited[port].config.data_vl

    def offer(self, now: Instant, port: int, packet: bytearray, control: bool) -> None:
        """Put a packet into the queue of its VL. A port without carrier drops it without a word."""
        self._credited[port].offer(now, packet, vl_of(packet), self.out)
        self._changed(now, port)

    def heard(self, now: Instant, port: int, said: FlowControl) -> bool:
        """A flow control packet has come. False: it is about a VL that is not there."""
        found = self._credited[port].heard(now, said, self.out)
        self._changed(now, port)
        return found

    def taken(self, now: Instant, port: int, vl: int, blocks: int) -> bool:
        """A packet has come in. False: its sender had no credit for it."""
        found = self._credited[port].taken(now, vl, blocks, self.out)
        self._changed(now, port)
        return found

    def freed(self, now: Instant, port: int, vl: int, blocks: int) -> None:
        """So many blocks have left the buffer."""
        self._credited[port].freed(now, vl, blocks, self.out)
        self._changed(now, port)

    def pause_glances(self, now: Instant) -> list[PauseGlance]:
        return credit_glances(self._credited, now)

    def track(self, now: Instant) -> None:
        """A QP has data to send from `now` on: bring every port up to date."""
        self.tracking = True
        self.room = 0
        for port, egress in enumerate(self._credited):
            self._note(port, egress.run(now - 1, self.out))
        self.next_ns = min(self._departures)

    def depart(self, now: Instant) -> None:
        """Carry out what happens at the instant `next_ns`, in the order of ports."""
        departures = self._departures
        while self.next_ns <= now:
            port = departures.index(self.next_ns)
            self._note(port, self._credited[port].run(now, self.out))
            self.next_ns = min(departures)

    def run(self, until: Instant) -> None:
        """Carry out everything up to and including `until`; only while not tracking."""
        for egress in self._credited:
            if egress.next_departure_ns <= until:
                egress.run(until, self.out)

    def next_departure_ns(self) -> Instant:
        """When the next thing happens at any port; NEVER: nothing will."""
        if self.tracking:
            return self.next_ns
        return min((egress.next_departure_ns for egress in self._credited), default=NEVER)

    def _changed(self, now: Instant, port: int) -> None:
        if self.tracking:
            self._note(port, self._credited[port].next_departure_ns)
            self.next_ns = min(self._departures)

    def _note(self, port: int, departure_ns: Instant) -> None:
        """Note when something happens at a port next, and whether it has room for data."""
        egress = self._credited[port]
        bit = 1 << port
        if egress.queues.bytes[egress.config.data_vl] < self._queue_bytes_max:
            self.room |= bit & self.carrier
        else:
            self.room &= ~bit
        self._departures[port] = departure_ns


class CreditReceiver:
    """Takes flow control packets out of what comes in, and holds credit for the rest while it is dealt with."""

    __slots__ = ("_done", "_drops", "_manage", "_onward", "_ports")

    def __init__(self, ports: CreditPorts, onward: Receive, manage: Receive, drops: dict[str, int], done: Done) -> None:
        """`manage`: takes packets of a subnet manager and of agents. `done`: frees the blocks of a packet."""
        self._done = done
        self._manage = manage
        self._ports = ports
        self._onward = onward
        self._drops = drops
        for reason in CREDIT_DROPS:
            drops.setdefault(reason, 0)

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """A packet or a link control frame from a port; a frame that is no good goes on, to be dropped there."""
        ports = self._ports
        if not ports.carrier >> port & 1:
            return self._onward(now, port, packet)
        if isinstance(packet, ControlFrame):
            said = parse(packet)
            if said is not None and ports.heard(now, port, said):
                return TAKEN
            return self._onward(now, port, packet)
        if len(packet) < LEAST or vl_of(packet) == MANAGEMENT_VL:
            managed = len(packet) >= LEAST and is_management(packet)
            return (self._manage if managed else self._onward)(now, port, packet)
        vl, blocks = vl_of(packet), blocks_of(len(packet))
        if vl >= ports.vls(port):
            return self._lose(NO_VL)
        if not ports.taken(now, port, vl, blocks):
            return self._lose(OVERRUN)
        found = self._onward(now, port, packet)
        self._done(now, port, vl, blocks, len(packet))
        return found

    def _lose(self, reason: str) -> str:
        self._drops[reason] += 1
        return reason
