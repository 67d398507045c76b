"""The sending end of a link with eight traffic classes, pause by class, and link control frames.

Owns the eight queues, which of them sends next, and which may not. `mrcfabric.egress_queues` has admission, marks and
trims, `mrcfabric.egress_wire` has rate, link delay and faults, and says how departures are worked out late and exactly.
`mrcfabric.egress` is the port with two queues. Who pauses a class, and for how long, is not decided here.

Which packet is next (IEEE 802.1Q 8.6.8): control frames; then strict classes, the highest number first; then the other
classes by deficit round robin. A class in its turn may send `round_bytes` times its weight, and what is left over from
its last turn; a class that is empty or paused in its turn loses that. Bytes are those on the wire, framing included.

A pause concerns packets that have not started. It ends at an instant of its own, at which a packet may start, and which
`run` returns like any other departure. A pause that comes at t stops the departure at t.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mrcfabric.class_egress_config import CLASSES, TRIM_CLASS, ClassEgressConfig
from mrcfabric.egress_queues import CONTROL_FULL, DATA_FULL, TRIMMED_FULL, TRIMMED_HERE, EgressQueues
from mrcfabric.node import Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.link import ControlFrame
from mrcfabric.witness import Witness

Departed: TypeAlias = Callable[[Instant, Any, int], None]
"""(instant, origin, bytes): so many bytes of a packet that was offered with this origin leave the port's queues."""

CONTROL_OVERHEAD_BYTES: Final = 20
"""Preamble 8 and gap 12: a control frame brings its Ethernet header and check sequence with it."""


class ClassEgress(EgressQueues):
    """The queues and the wire of one port with eight traffic classes. Calls must not go back in time.

    What `EgressQueues` calls control are the strict classes together, what it calls data the others together.
    """

    __slots__ = (
        "_deficit", "_frames", "_given", "_limits", "_order", "_pause_from", "_pause_ns", "_pausing", "_quantum",
        "_queues", "_seen_ns", "_strict", "_turn", "_waiting", "class_bytes", "class_packets", "class_peak",
        "class_sent_bytes", "control_frames", "departed", "paused_until", "pauses",
    )  # fmt: skip

    config: ClassEgressConfig

    def __init__(self, config: ClassEgressConfig, port: int, rng: Rng, departed: Departed | None = None) -> None:
        full = [CONTROL_FULL if cls in config.strict else DATA_FULL for cls in range(CLASSES)]
        super().__init__(config, port, rng, (*full, TRIMMED_FULL))
        self.departed = departed
        """Called at the instant at which a packet starts, with the origin given to `offer` and its bytes; not for a
        packet offered without an origin, nor for a control frame.

        Also called inside an `offer` that trims, for the bytes that were cut off: the bytes told for an origin add up
        to those that were offered and admitted. It may call `send_control` of any port, this one included.
        """
        # Packets trimmed here share the queue of `TRIM_CLASS`, under a limit of their own, which is the last one.
        most = config.limits[TRIM_CLASS]
        self._limits = (*config.limits, most - most * config.control_reserve_ppm // PPM)
        self._queues: tuple[deque[tuple[Buffer, Any]], ...] = tuple(deque() for _ in range(CLASSES))
        self._frames: deque[ControlFrame] = deque()
        self._waiting = 0  # bit c: packets of class c wait
        self._strict = sum(1 << cls for cls in config.strict)
        self.class_bytes = [0] * CLASSES
        """By class: bytes that wait."""
        self.class_peak = [0] * CLASSES
        self.class_packets = [0] * CLASSES
        """By class: departures, also of packets that a fault then loses."""
        self.class_sent_bytes = [0] * CLASSES
        self.control_frames = 0
        """Control frames sent; they are neither among the packets nor among the bytes."""
        self.paused_until: list[Instant] = [0] * CLASSES
        """By class: the instant from which its packets may start again; one that has passed means nothing."""
        self.pauses = [0] * CLASSES
        """By class: calls of `pause` that did not let it go on."""
        self._pausing = 0  # bit c: class c may still be paused when the next packet starts
        self._pause_from: list[Instant] = [0] * CLASSES
        self._pause_ns = [0] * CLASSES  # of pauses before the latest one
        self._seen_ns: Instant = 0
        # Deficit round robin: whose turn it is, and whether it has got its quantum in this turn.
        self._order = tuple(cls for cls in range(CLASSES) if cls not in config.strict)
        self._quantum = tuple(weight * config.round_bytes for weight in config.weights)
        self._deficit = [0] * CLASSES
        self._turn = 0
        self._given = False

    @property
    def next_start_ns(self) -> Instant:
        """When the next packet or control frame starts; NEVER with none waiting."""
        if self._frames or (self._waiting and not self._pausing):
            return self.busy_until
        return self._look()[1]

    @property
    def waiting_packets(self) -> tuple[int, int]:
        """How many packets of the classes that are not strict, and of the strict ones, wait."""
        waiting = [len(queue) for queue in self._queues]
        control = sum(waiting[cls] for cls in self.config.strict)
        return sum(waiting) - control, control

    def offer(self, now: Instant, packet: Buffer, cls: int, out: list[Transmit], origin: Any = None) -> bool:
        """Offer a packet of class `cls` at `now`. False: the port dropped and counted it; `departed` is not called.

        Commits departures that start before `now` to `out` first.
        """
        if self.busy_until < now:
            self._come_to(now, out)
        if self._witness is not None:
            self._witness.classed(cls, self.class_bytes[cls])
        elif self._append(packet, cls, origin):
            return True
        refused = self.refused_bytes
        if not self._settle(now, packet, cls, origin):
            return False
        cut = self.refused_bytes - refused
        if cut and origin is not None and self.departed is not None:
            self.departed(now, origin, cut)
        return True

    def run(self, until: Instant, out: list[Transmit]) -> Instant:
        """Commit every departure that starts up to and including `until`; returns `next_departure_ns`.

        A pause that ends lets a packet start at that very instant, and the result takes that into account.
        """
        if until > self._seen_ns:
            self._seen_ns = until
        if self._one_by_one:
            return self._run_one_by_one(until, out)
        while True:
            start = self.busy_until
            if self._frames:
                if start > until:
                    return start
                self._start_frame(start, out)
                continue
            ready = self._waiting
            if self._pausing:
                ready, start = self._look()
            if not ready:
                return NEVER
            if start > until:
                return start
            self._start_packet(start, ready, out)

    def pause(self, now: Instant, cls: int, until_ns: Instant, out: list[Transmit]) -> None:
        """No packet of class `cls` starts at or after `now` until `until_ns`; not after `now`: go on.

        Replaces an earlier pause of the class. The packet in serialization goes on. Commits departures before `now`.
        """
        self._come_to(now, out)
        self._pause_ns[cls] = self.pause_ns(cls, now)
        self._pause_from[cls] = now
        self.paused_until[cls] = until_ns
        if until_ns > now:
            self._pausing |= 1 << cls
            self.pauses[cls] += 1
        else:
            self._pausing &= ~(1 << cls)
        if self._witness is not None:
            self._witness.paused(now, self.port, cls, until_ns)

    def pause_ns(self, cls: int, now: Instant) -> int:
        """For how long, up to `now`, the class has been paused."""
        since = self._pause_from[cls]
        return self._pause_ns[cls] + max(0, min(now, self.paused_until[cls]) - since)

    def send_control(self, now: Instant, frame: ControlFrame, out: list[Transmit]) -> None:
        """Send a link control frame before all that waits, after the packet on the wire.

        Frames keep their order. Nothing pauses them, and no queue's limit concerns them. Commits departures before
        `now` to `out`.
        """
        self._come_to(now, out)
        self._frames.append(frame)

    def set_witness(self, witness: Witness | None) -> None:
        """As the base class; the witness is also told of pauses: those in force, and all from now on."""
        super().set_witness(witness)
        if witness is not None:
            for cls, until_ns in enumerate(self.paused_until):
                if until_ns > self._seen_ns:
                    witness.paused(self._pause_from[cls], self.port, cls, until_ns)

    def paused_since(self, cls: int, now: Instant) -> Instant | None:
        """When the pause of a class that is in force at `now` was said last; None: nobody pauses it."""
        return self._pause_from[cls] if self.paused_until[cls] > now else None

    def counters(self, now: Instant | None = None) -> dict[str, Any]:
        """Those of `EgressQueues`, `control_frames` sent, and `classes` {number: figures of the class}.

        These are `bytes` and `packets` departed, `waiting_bytes`, their `peak`, `pauses`, and `pause_ns`, for how long
        the class has been paused up to `now`; None: up to the latest instant that the port has been run to.
        """
        at_ns = self._seen_ns if now is None else now
        classes = {
            cls: {
                "bytes": self.class_sent_bytes[cls],
                "packets": self.class_packets[cls],
                "waiting_bytes": self.class_bytes[cls],
                "peak": self.class_peak[cls],
                "pauses": self.pauses[cls],
                "pause_ns": self.pause_ns(cls, at_ns),
            }
            for cls in range(CLASSES)
        }
        return {**super().counters(), "control_frames": self.control_frames, "classes": classes}

    def _come_to(self, now: Instant, out: list[Transmit]) -> None:
        """Commit departures that start before `now`; nothing starts before `now` from here on."""
        if self.busy_until < now:
            if self._waiting or self._frames:
                self.run(now - 1, out)
            if self.busy_until < now:
                self.busy_until = now

    def _append(self, packet: Buffer, cls: int, origin: Any) -> bool:
        """Append a packet to the queue of its class, if that has room for it."""
        limit = self._limits[cls]
        if cls == TRIMMED_HERE:
            cls = TRIM_CLASS
        size = len(packet)
        waiting = self.class_bytes[cls] + size
        if waiting > limit:
            return False
        self.class_bytes[cls] = waiting
        if waiting > self.class_peak[cls]:
            self.class_peak[cls] = waiting
        bit = 1 << cls
        if self._strict & bit:
            self.control_bytes += size
            self.control_bytes_peak = max(self.control_bytes_peak, self.control_bytes)
        else:
            self.data_bytes += size
            self.data_bytes_peak = max(self.data_bytes_peak, self.data_bytes)
        self._waiting |= bit
        self._queues[cls].append((packet, origin))
        return True

    def _look(self) -> tuple[int, Instant]:
        """The classes of which a packet may start first, as bits, and when; no bits and NEVER with none waiting."""
        ready, start = self._waiting, self.busy_until
        if not ready:
            return 0, NEVER
        paused = [
            (until_ns, 1 << cls)
            for cls, until_ns in enumerate(self.paused_until)
            if until_ns > start and ready & self._pausing & 1 << cls
        ]
        free = ready & ~sum(bit for _, bit in paused)
        if free:
            return free, start
        first = min(paused)[0]
        return sum(bit for until_ns, bit in paused if until_ns == first), first

    def _start_frame(self, start: Instant, out: list[Transmit]) -> None:
        """The first control frame starts."""
        frame = self._frames.popleft()
        self.control_frames += 1
        bits_ns = (len(frame) + CONTROL_OVERHEAD_BYTES) * self._numerator
        self.busy_until = end = start - -bits_ns // self._denominator
        out.append((self.port, end + self._delay_ns, frame))

    def _start_packet(self, start: Instant, ready: int, out: list[Transmit]) -> None:
        """A packet of one of the classes `ready` starts."""
        if strict := ready & self._strict:
            cls = strict.bit_length() - 1
        elif ready & ready - 1:
            cls = self._in_turn(ready)
        else:
            cls = ready.bit_length() - 1
        queue = self._queues[cls]
        packet, origin = queue.popleft()
        size = len(packet)
        self.class_bytes[cls] = left = self.class_bytes[cls] - size
        self.class_packets[cls] += 1
        self.class_sent_bytes[cls] += size
        if not queue:
            self._waiting &= ~(1 << cls)
            self._deficit[cls] = 0
        if strict:
            self.control_bytes -= size
            self.control_packets += 1
            self.control_sent_bytes += size
        else:
            self.data_bytes -= size
            self.data_packets += 1
            self.data_sent_bytes += size
            if left > self._ecn_floor:
                packet = self._mark(packet, left)
        if self._pausing:
            self._expire(start)
        self.busy_until = end = start + (size * self._numerator + self._bytes_numerator) // self._denominator
        out.append((self.port, end + self._delay_ns, packet))
        if origin is not None and self.departed is not None:
            self.departed(start, origin, size)

    def _in_turn(self, ready: int) -> int:
        """Whose turn it is among the classes `ready`, of which none is strict."""
        deficit = self._deficit
        while True:
            cls = self._order[self._turn]
            if ready >> cls & 1:
                if not self._given:
                    self._given = True
                    deficit[cls] += self._quantum[cls]
                cost = len(self._queues[cls][0][0]) + self._overhead
                if cost <= deficit[cls]:
                    deficit[cls] -= cost
                    return cls
            else:
                deficit[cls] = 0
            self._turn = (self._turn + 1) % len(self._order)
            self._given = False

    def _expire(self, start: Instant) -> None:
        """Forget pauses that are over when a packet starts."""
        for cls, until_ns in enumerate(self.paused_until):
            if until_ns <= start:
                self._pausing &= ~(1 << cls)
