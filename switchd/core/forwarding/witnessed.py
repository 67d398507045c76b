"""What a switch's witness hears of its forwarding: how a hash chose the port of each packet.

Owns the statement's part about the hash. It stands in the place of the forwarding only while there is a witness, and
chooses nothing itself.
"""

from functools import partial
from typing import Any

from mrcfabric.units import Buffer, Instant
from mrcfabric.witness import Witness
from switchd.core.events import EcmpMember
from switchd.core.forwarding import Forwarding


class WitnessedForwarding:
    """A forwarding whose choices a witness is told."""

    def __init__(self, inner: Forwarding, witness: Witness) -> None:
        self.inner = inner
        self._witness = witness

    def route(self, at_ns: Instant, in_port: int, packet: Buffer) -> tuple[int, Buffer] | str:
        """`Forwarding.route`; the witness asks how it was chosen when the packet is one that it follows."""
        routed = self.inner.route(at_ns, in_port, packet)
        if not isinstance(routed, str):
            self._witness.routed(routed[0], partial(self.inner.chosen, routed[1]))
        return routed

    def chosen(self, packet: Buffer) -> dict[str, Any] | None:
        """`Forwarding.chosen`."""
        return self.inner.chosen(packet)

    def carrier(self, at_ns: Instant, port: int, up: bool) -> None:
        """`Forwarding.carrier`."""
        self.inner.carrier(at_ns, port, up)

    @property
    def next_change_ns(self) -> Instant:
        """`Forwarding.next_change_ns`."""
        return self.inner.next_change_ns

    def follow(self, at_ns: Instant) -> list[EcmpMember]:
        """`Forwarding.follow`."""
        return self.inner.follow(at_ns)

    def counters(self) -> dict[str, Any]:
        """`Forwarding.counters`."""
        return self.inner.counters()
