"""The sending end of a link with eight traffic classes, pause by class, and link control frames. Signatures so far."""

from collections.abc import Callable
from typing import Any, TypeAlias

from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.egress import Egress
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.link import ControlFrame

Departed: TypeAlias = Callable[[Instant, Any, int], None]
"""(instant, origin, bytes): so many bytes of a packet that was offered with this origin leave the port's queues."""


class ClassEgress(Egress):
    """The queues and the wire of one port with eight traffic classes. Calls must not go back in time.

    Will share a base class with `Egress`, which has `impairment`, `set_impairment`, `check_impairment`,
    `set_standstill`, `set_ecn`, `set_trim`, `set_witness`, `next_start_ns`, `next_departure_ns`, `next_release_ns`,
    `busy_until` (when the wire is free) and the counters; `data_bytes` and `control_bytes` are sums over the classes
    that are not strict, and over the strict ones.
    """

    __slots__ = ("class_bytes", "departed", "paused_until")

    config: ClassEgressConfig

    def __init__(self, config: ClassEgressConfig, port: int, rng: Rng, departed: Departed | None = None) -> None:
        self.departed = departed
        """Called at the instant at which a packet starts, with the origin given to `offer` and its bytes; not for a
        packet offered without an origin, nor for a control frame.

        Also called inside an `offer` that trims, for the bytes that were cut off: the bytes told for an origin add up
        to those that were offered and admitted. It may call `send_control` of any port, this one included.
        """
        self.class_bytes: list[int]
        """By class: bytes that wait."""
        self.paused_until: list[Instant]
        """By class: the instant from which its packets may start again; one that has passed means nothing."""
        raise NotImplementedError

    def offer(self, now: Instant, packet: Buffer, cls: int, out: list[Transmit], origin: Any = None) -> bool:
        """Offer a packet of class `cls` at `now`. False: the port dropped and counted it; `departed` is not called.

        Commits departures that start before `now` to `out` first.
        """
        raise NotImplementedError

    def run(self, until: Instant, out: list[Transmit]) -> Instant:
        """Commit every departure that starts up to and including `until`; returns `next_departure_ns`.

        A pause that ends lets a packet start at that very instant, and the result takes that into account.
        """
        raise NotImplementedError

    def pause(self, now: Instant, cls: int, until_ns: Instant, out: list[Transmit]) -> None:
        """No packet of class `cls` starts at or after `now` until `until_ns`; not after `now`: go on.

        Replaces an earlier pause of the class. The packet in serialization goes on. Commits departures before `now`.
        """
        raise NotImplementedError

    def send_control(self, now: Instant, frame: ControlFrame, out: list[Transmit]) -> None:
        """Send a link control frame before all that waits, after the packet on the wire.

        Frames keep their order. Nothing pauses them, and no queue's limit concerns them. Commits departures before
        `now` to `out`.
        """
        raise NotImplementedError

    def counters(self, now: Instant | None = None) -> dict[str, Any]:
        """Those of `Egress`, `control_frames` sent, and `classes` {number: bytes, packets (departed), waiting_bytes,
        peak, pause_ns, pauses}. `now`: up to when a pause that is in force counts; None: up to the latest call.
        """
        raise NotImplementedError
