"""A switch that hashes keeps every flow on one way for as long as its group of up-links and its seed stay as they are.

RFC 2992. A flow is source, destination, next header and both UDP ports.
"""

from typing import Any

from mrcfabric.node import Input, Transmit
from mrcfabric.units import Instant
from mrcfabric.wire.link import ControlFrame
from swarm.invariant import InvariantError
from switchd.core.routed import RoutedSwitch


class _Seen:
    """A forwarding whose `route` is another function."""

    def __init__(self, forwarding: Any, route: Any) -> None:
        self._forwarding = forwarding
        self.route = route

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forwarding, name)


class OneWay:
    """The check of one switch."""

    def __init__(self, switch: RoutedSwitch) -> None:
        self._switch = switch
        self._ways: dict[bytes, tuple[int, tuple[int, int]]] = {}
        """Flow -> its port, and how often the group had changed, and the seed of the hash, when it was seen."""
        forwarding: Any = switch._forwarding
        self._forwarding = forwarding
        route = forwarding.route

        def seen(at_ns: Instant, in_port: int, packet: Any) -> Any:
            flow = bytes(packet[8:44])
            found = route(at_ns, in_port, packet)
            if not isinstance(found, str) and not isinstance(packet, ControlFrame):
                self._keeps(at_ns, flow, found[0])
            return found

        switch._forwarding = _Seen(forwarding, seen)

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Nothing to remember."""

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Nothing to compare."""

    def _keeps(self, at_ns: Instant, flow: bytes, port: int) -> None:
        now = (self._forwarding.moves, self._forwarding.config.seed)
        before, when = self._ways.get(flow, (port, now))
        if before != port and when == now:
            what = f"a flow went by port {before}, now by {port}"
            raise InvariantError("paths", self._switch.name, at_ns, what)
        self._ways[flow] = (port, now)
