"""What faults do to the packets of one direction of one link; the only place that knows.

Owns the stages that a packet passes when its serialization starts. `impairment` has the settings; `egress` has queues,
departure times and the rate that a limit leaves.

A fault may hold a packet back, never bring it forward. A held packet stays with the sender (and dies with it) until one
link delay before it arrives. So drivers see the packets of one direction in the order of their arrival, and no packet
is on its way for longer than on a healthy link. Except for packets that reordering holds back, that is also the order
in which they left. What is on a wire with a limited rate is held back, too, until its last bit leaves: if the limit
ends meanwhile, the rest of it goes faster.
"""

from collections.abc import Callable
from dataclasses import replace
from heapq import heapify, heappop, heappush
from struct import Struct
from typing import Final, TypeAlias

from mrcfabric.impairment import HEALTHY, TOUCHES, Impairment
from mrcfabric.named_packets import NamedPackets
from mrcfabric.node import Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire import srh
from mrcfabric.wire.entropy import EvOrder, ev_from_wire
from mrcfabric.wire.layout import IPV6_SIZE, UDP_OFFSET
from mrcfabric.wire.usid import CONTAINER_IN_PACKET, usids

RETRIES_MAX: Final = 16
"""After so many retries in vain a link gives up, and the packet is lost."""

_Stage: TypeAlias = Callable[[Buffer, bool], bool]

_SOURCE_PORT: Final = Struct(">H")
_FLOW: Final = Struct(">I")


class ImpairedLink:
    """One direction of a link with faults in force: its random stream and its counts.

    It begins healthy; `delay_ns` is that of the healthy link.
    """

    __slots__ = (
        "_alters", "_bad", "_carried", "_delay_ns", "_ev_order", "_evs", "_healthy", "_last_ns", "_limited", "_line",
        "_losing", "_meets_all", "_named", "_released_ns", "_settled", "_slows", "_usids", "impairment", "met", "rng",
        "stall_ns", "started_ns", "touched", "touches", "whole",
    )  # fmt: skip

    def __init__(self, rng: Rng, delay_ns: int, ev_order: EvOrder = EvOrder.PORT_LOW) -> None:
        self.rng = rng
        self.touched = dict.fromkeys(TOUCHES, 0)
        """Packets by what faults did to them."""
        self.touches: list[str] = []
        """What happened to the packet that was carried last, of `TOUCHES`."""
        self.started_ns: Instant = 0
        """When the packet that is carried next has started; the caller says so."""
        self.stall_ns = 0
        """For how long retries of the packet that was carried last keep the link."""
        self.met = 0
        """Packets that met a fault: they were lost, or left while a fault that concerns all packets was in force."""
        self.whole = False
        """The link is healthy, and no packet is held back."""
        self._delay_ns = delay_ns
        self._ev_order = ev_order
        self._line: list[tuple[Instant, int, Transmit]] = []  # by arrival, then by departure
        self._carried = 0
        self._settled = 0
        """`_carried`, before the packet that was carried last."""
        self._last_ns: Instant = -1
        self._released_ns: Instant = -1
        self._bad: bool | None = None
        self._named = NamedPackets()
        self.impairment = HEALTHY
        self.change(HEALTHY)

    @property
    def named_losses(self) -> dict[int, int]:
        """How often each packet that a fault named was lost, by its number (`NamedPackets`)."""
        return self._named.losses

    @property
    def held(self) -> int:
        """Packets held back."""
        return len(self._line)

    @property
    def next_release_ns(self) -> Instant:
        """When the first packet that is held back goes on; NEVER with none."""
        return self._line[0][0] - self._delay_ns if self._line else NEVER

    def change(self, impairment: Impairment) -> None:
        """Put these faults in force. A burst of losses continues if its figures stay the same."""
        before, self.impairment = self.impairment, impairment
        if (before.loss_ppm, before.loss_burst_packets) != (impairment.loss_ppm, impairment.loss_burst_packets):
            self._bad = None
        self.whole = False
        self._usids = frozenset(impairment.black_hole_usids)
        self._evs = frozenset(impairment.black_hole_evs)
        self._named.change(frozenset(impairment.lost_packets))
        # A stage draws random numbers only when it is in force and a packet reaches it.
        stages: tuple[tuple[str, object, _Stage], ...] = (
            ("link_down", not impairment.up, lambda packet, data: True),
            ("loss", self._named, lambda packet, data: data and self._named.lose(packet)),
            ("loss", impairment.loss_ppm, self._loses),
            ("gray", impairment.gray_ppm, lambda packet, data: data and self.rng.chance(impairment.gray_ppm)),
            ("black_hole", self._usids or self._evs, self._swallows),
        )
        self._losing = tuple((reason, stage) for reason, in_force, stage in stages if in_force)
        # These concern only the packets they lose.
        rest = replace(
            impairment, gray_ppm=0, black_hole_usids=(), black_hole_evs=(), lost_packets=(), control_loss_ppm=0
        )
        self._meets_all = rest != HEALTHY
        self._healthy = impairment == HEALTHY
        self._limited = bool(impairment.rate_bps)
        self._slows = bool(impairment.delay_ns or impairment.jitter_ns)
        self._alters = bool(
            self._slows
            or impairment.retry_ppm
            or impairment.corruption_ppm
            or impairment.reordering_ppm
            or impairment.duplication_ppm
        )

    def carry(self, sent: Transmit, data: bool, out: list[Transmit]) -> str | None:
        """Append what becomes of one packet to `out`, or hold it back; or return the reason why it is lost.

        `sent`: the transmit as on a healthy link. `data`: the packet comes from the queue of the data class. The caller
        has called `release` up to the packet's departure.
        """
        port, arrival_ns, packet = sent
        self.touches.clear()
        self._settled = self._carried
        self.stall_ns = 0
        for reason, loses in self._losing:
            if loses(packet, data):
                self.met += 1
                return reason
        self.met += self._meets_all
        if self._alters:
            return self._alter(sent, out)
        if arrival_ns <= self._last_ns:
            self._touch("delayed")
            arrival_ns = self._last_ns + 1
            sent = port, arrival_ns, packet
        self._last_ns = arrival_ns
        if self._line or self._limited:
            self._hold(sent)
        else:
            out.append(sent)
            self.whole = self._healthy
        return None

    def hasten(self, sooner_ns: int) -> None:
        """The packet that was carried last is still on a wire with a limited rate, and leaves it sooner by so much."""
        before = [one for one in self._line if one[1] <= self._settled]
        # Packets keep their order.
        floor_ns = max((at_ns for at_ns, _, _ in before), default=self._released_ns) + 1
        for at_ns, number, (port, _, packet) in self._line:
            if number > self._settled:
                early_ns = min(at_ns, max(at_ns - sooner_ns, floor_ns))
                before.append((early_ns, number, (port, early_ns, packet)))
                if at_ns == self._last_ns:
                    self._last_ns = early_ns
        heapify(before)
        self._line = before

    def _alter(self, sent: Transmit, out: list[Transmit]) -> str | None:
        """The rest of `carry` where a fault may change the packet, its number or when it arrives."""
        port, arrival_ns, packet = sent
        impairment, chance = self.impairment, self.rng.chance
        direct = not (self._line or self._limited or self._slows or impairment.reordering_ppm)
        if impairment.retry_ppm and chance(impairment.retry_ppm):
            tries = self._retries()
            if tries > RETRIES_MAX:
                return "loss"
            self._touch("retried")
            once_ns = impairment.retry_ns or arrival_ns - self.started_ns + self._delay_ns
            self.stall_ns = tries * once_ns
            arrival_ns += self.stall_ns
            direct = False
        if chance(impairment.corruption_ppm):
            packet = self._corrupted(packet)
            self._touch("corrupted")
        at_ns = self._delayed(arrival_ns)
        if chance(impairment.reordering_ppm):
            self._touch("reordered")
            self._hold((port, at_ns + impairment.reordering_ns, packet))
            return None
        if at_ns > arrival_ns:
            self._touch("delayed")
        arrivals: list[Transmit] = [(port, at_ns, packet)]
        if chance(impairment.duplication_ppm):
            self._touch("duplicated")
            at_ns += 1
            arrivals.append((port, at_ns, bytearray(packet)))
        self._last_ns = at_ns
        if direct:
            out += arrivals
        else:
            for transmit in arrivals:
                self._hold(transmit)
        return None

    def carry_control(self, sent: Transmit, out: list[Transmit]) -> str | None:
        """`carry` for a link control frame: only a dead link and `control_loss_ppm` lose it; it keeps its place."""
        self.touches.clear()
        self._settled = self._carried
        self.stall_ns = 0
        impairment = self.impairment
        if not impairment.up or self.rng.chance(impairment.control_loss_ppm):
            self.met += 1
            return "loss" if impairment.up else "link_down"
        direct = not (self._line or self._limited or self._slows)
        port, arrival_ns, frame = sent
        self._last_ns = at_ns = self._delayed(arrival_ns)
        if at_ns > arrival_ns:
            self.met += 1
            self._touch("delayed")
            sent = port, at_ns, frame
        if direct:
            out.append(sent)
            self.whole = self._healthy
        else:
            self._hold(sent)
        return None

    def _retries(self) -> int:
        """How often a packet that was hit is sent again."""
        tries = 1
        while tries <= RETRIES_MAX and self.rng.chance(self.impairment.retry_ppm):
            tries += 1
        return tries

    def _delayed(self, at_ns: Instant) -> Instant:
        """When a packet arrives that would arrive at `at_ns` on the healthy link."""
        impairment = self.impairment
        if self._slows and self.rng.chance(impairment.delay_ppm):
            at_ns += impairment.delay_ns
            if impairment.jitter_ns:
                at_ns += self.rng.below(impairment.jitter_ns + 1)
        # Packets keep their order: this one arrives after the one before. Only reordering changes that.
        return max(at_ns, self._last_ns + 1)

    def release(self, until: Instant, out: list[Transmit]) -> Instant:
        """Append held packets that continue up to and including `until`; returns when the next one does, or NEVER."""
        line = self._line
        while line and line[0][0] - self._delay_ns <= until:
            port, arrival_ns, packet = heappop(line)[2]
            # Reordering may put two packets at one instant: the second then arrives 1 ns later.
            at_ns = max(arrival_ns, self._released_ns + 1)
            out.append((port, at_ns, packet))
            self._released_ns = at_ns
            self._last_ns = max(self._last_ns, at_ns)
        return self.next_release_ns

    def _touch(self, what: str) -> None:
        """The packet that is being carried meets one of `TOUCHES`."""
        self.touched[what] += 1
        self.touches.append(what)

    def _hold(self, transmit: Transmit) -> None:
        self._carried += 1
        heappush(self._line, (transmit[1], self._carried, transmit))

    def _loses(self, packet: Buffer, data: bool) -> bool:
        """Whether Gilbert's model loses the packet: every packet in the bad state, none in the good one."""
        share, burst = self.impairment.loss_ppm, self.impairment.loss_burst_packets
        if burst == 1 or share == PPM:
            return self.rng.chance(share)
        if self._bad is None:
            self._bad = self.rng.chance(share)
        elif self._bad:
            # Above a share of burst / (burst + 1) only one packet fits between two bursts, and bursts get longer than
            # asked for.
            self._bad = self.rng.below(max(burst * (PPM - share), share)) >= PPM - share
        else:
            self._bad = self.rng.below(burst * (PPM - share)) < share
        return self._bad

    def _swallows(self, packet: Buffer, data: bool) -> bool:
        """Whether a black hole takes the packet. It never takes one too short to hold the field."""
        if len(packet) < IPV6_SIZE:
            return False
        if self._usids and not self._usids.isdisjoint(usids(packet[CONTAINER_IN_PACKET])):
            return True
        start = srh.SRH_SIZE if srh.follows(packet) else 0
        if not self._evs or len(packet) < start + UDP_OFFSET + _SOURCE_PORT.size:
            return False
        (flow,) = _FLOW.unpack_from(packet, start + IPV6_SIZE)
        (source_port,) = _SOURCE_PORT.unpack_from(packet, start + UDP_OFFSET)
        return ev_from_wire(flow, source_port, self._ev_order) in self._evs

    def _corrupted(self, packet: Buffer) -> bytearray:
        """A copy with one random bit flipped."""
        copy = bytearray(packet)
        bit = self.rng.below(8 * len(copy))
        copy[bit >> 3] ^= 1 << (bit & 7)
        return copy
