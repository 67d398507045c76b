"""How a switch finds the port of a packet: by the uSIDs in its address, or by a hash over paths of equal cost.

Owns the interface between a switch's loops and its forwarding. A forwarding patches the packet and names the port; it
knows nothing of queues, of pauses or of the packets before.
"""

from typing import Any, Protocol, TypeAlias

from mrcfabric.units import Buffer, Instant
from switchd.core.events import EcmpMember

Routed: TypeAlias = tuple[int, Buffer]
"""(port by which it leaves, the packet as it leaves): patched in place where it can be written, else a copy."""


class Forwarding(Protocol):
    """What a switch asks of its forwarding."""

    def route(self, at_ns: Instant, in_port: int, packet: Buffer) -> Routed | str:
        """Take a packet through the switch: its port and the packet as it leaves, or a drop reason.

        The reasons are among `switchd.core.stats.DROP_REASONS`. Any bytes will do; nothing raises.
        """
        ...

    def carrier(self, at_ns: Instant, port: int, up: bool) -> None:
        """The switch sees that a port lost its carrier, or has it again. Instants never go back."""
        ...

    @property
    def next_change_ns(self) -> Instant:
        """When the ways will change next; NEVER as far as is known. Frames of that instant come before it."""
        ...

    def follow(self, at_ns: Instant) -> list[EcmpMember]:
        """Carry out the changes up to and including this instant; returns them in their order."""
        ...

    def chosen(self, packet: Buffer) -> dict[str, Any] | None:
        """How a hash chose the port of this packet, which `route` has let pass: {members, hash}; None: none did."""
        ...

    def counters(self) -> dict[str, Any]:
        """What the forwarding counts besides, by names of its own."""
        ...
