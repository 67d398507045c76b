"""Switches that route for themselves: one with queues of two classes, and a lossless one.

Owns how a routing core is driven inside a switch: packets for the switch itself go to it, its own go straight into the
queue of their port in the class of control, and its timers take part in the order of time. `switchd.core.routing` is
that core, `forwarding.learned` the table that it fills. A switch that stands still hears nothing, but its core lives
on. Packets between routing cores are not among those `received` by a switch; `routing` has their counts.
"""

from typing import Any

from mrcfabric.egress import CONTROL
from mrcfabric.errors import RefusedError
from mrcfabric.naming import nic_address, parse_name, shown
from mrcfabric.node import Input, Transmit
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.layout import IPV6_SIZE
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.local import LINK_LOCAL, ROUTING_DSCP
from switchd.core.commands import Command, ResetSession, SetCarrier, SetRouting, SetSession
from switchd.core.forwarding.learned import LearnedForwarding
from switchd.core.lossless import LosslessSwitch
from switchd.core.routed import RoutedSwitch
from switchd.core.routing.router import Router
from switchd.core.routing.summary import routing_counters
from switchd.core.routing.trouble import State
from switchd.core.settings import SwitchConfig

_DESTINATION = 24
"""Where the destination of an IPv6 packet begins."""


def is_for_switch(packet: Buffer) -> bool:
    """Whether a packet is addressed to the switch that it comes to: its destination is no NIC but of this link."""
    return len(packet) >= IPV6_SIZE and packet[_DESTINATION] == LINK_LOCAL and not isinstance(packet, ControlFrame)


def obey(router: Router, at_ns: Instant, command: SetRouting | ResetSession | SetSession) -> None:
    """Carry out a command that is for the routing core. Raises RefusedError."""
    if isinstance(command, ResetSession):
        router.reset(at_ns, command.port)
        return
    if isinstance(command, SetSession):
        router.hold_down(at_ns, command.port, command.down)
        return
    if command.slower < 1:
        raise RefusedError(f"slower {command.slower} is less than 1, which is as fast as ever")
    state = State(
        command.hung, command.stuck, command.slower, command.shutdown, command.withdrawn,
        _addresses(command.leaked), _addresses(command.zombies),
    )  # fmt: skip
    router.set_state(at_ns, state)


def _addresses(names: list[str] | None) -> tuple[int, ...]:
    """The addresses of NICs. Raises RefusedError."""
    nics = [(name, parse_name(name)) for name in names or ()]
    if wrong := [name for name, node in nics if node is None or node.tier != "nic"]:
        raise RefusedError(f"{shown(wrong[0])} is no NIC, as h003")
    return tuple(int.from_bytes(nic_address(node.number), "big") for _, node in nics if node is not None)


class SpeakingSwitch(RoutedSwitch):
    """One switch in fabric time, with queues of two classes."""

    def __init__(
        self, config: SwitchConfig, forwarding: LearnedForwarding, router: Router, start_ns: Instant = 0
    ) -> None:
        super().__init__(config, forwarding, start_ns)
        self.router = router

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """As `RoutedSwitch`, with what the routing core does in between."""
        out: list[Transmit] = []
        router = self.router
        for at_ns, rank, in_port, _, body in inputs:
            # A frame comes before what the routing core does at its instant.
            if at_ns > router.next_ns:
                router.run(at_ns - 1)
                self._speak(out)
            if rank:
                self._take(at_ns, in_port, body, out)
            else:
                self._carry_out(at_ns, body, out)
        if until >= router.next_ns:
            router.run(until)
            self._speak(out)
        self._run(until, out)
        return out

    def next_timeout(self) -> Instant | None:
        """The next departure, or what the routing core does next."""
        soonest = min(self._timeout, self.router.next_ns)
        return None if soonest == NEVER else soonest

    def counters(self) -> dict[str, Any]:
        """Those of `RoutedSwitch`, and `routing`, as `routing_counters` has it."""
        return {**super().counters(), "routing": routing_counters(self.router)}

    def _take(self, at_ns: Instant, in_port: int, packet: Buffer, out: list[Transmit]) -> None:
        if not self.forwarding or not is_for_switch(packet):
            super()._take(at_ns, in_port, packet, out)
            return
        self.router.hear(at_ns, in_port, packet)
        self._speak(out)

    def _obey(self, at_ns: Instant, command: Command, out: list[Transmit]) -> None:
        before = [egress.impairment.up for egress in self.egress]
        super()._obey(at_ns, command, out)
        for egress, was_up in zip(self.egress, before, strict=True):
            if egress.impairment.up != was_up:
                self.router.carrier(at_ns, egress.port, egress.impairment.up)
        self._speak(out)

    def _route_by(self, at_ns: Instant, command: SetRouting | ResetSession | SetSession | SetCarrier) -> None:
        if not isinstance(command, SetCarrier):
            obey(self.router, at_ns, command)

    def _speak(self, out: list[Transmit]) -> None:
        """Send what the routing core has to send, and tell what it has to tell."""
        packets, self.router.out = self.router.out, []
        for at_ns, port, packet in packets:
            egress = self.egress[port]
            egress.offer(at_ns, packet, CONTROL, out)
            self._visit(egress)
        if self.router.events:
            self._events += self.router.events
            self.router.events.clear()


class SpeakingLosslessSwitch(LosslessSwitch):
    """One lossless switch in fabric time. The timer of the ways is that of the routing core."""

    def __init__(
        self, config: SwitchConfig, forwarding: LearnedForwarding, router: Router, start_ns: Instant = 0
    ) -> None:
        super().__init__(config, forwarding, start_ns)
        self.router = router
        self._set_timer(3 * self._pairs, router.next_ns)

    def counters(self) -> dict[str, Any]:
        """Those of `LosslessSwitch`, and `routing`, as `routing_counters` has it."""
        return {**super().counters(), "routing": routing_counters(self.router)}

    def _take(self, at_ns: Instant, in_port: int, packet: Buffer, out: list[Transmit]) -> None:
        if not self.forwarding or not is_for_switch(packet):
            super()._take(at_ns, in_port, packet, out)
            return
        self.router.hear(at_ns, in_port, packet)
        self._speak(out)

    def _expire(self, at_ns: Instant, number: int, out: list[Transmit]) -> None:
        if number < 3 * self._pairs:
            super()._expire(at_ns, number, out)
            return
        self.router.run(at_ns)
        self._speak(out)

    def _obey(self, at_ns: Instant, command: Command, out: list[Transmit]) -> None:
        before = [egress.impairment.up for egress in self.egress]
        super()._obey(at_ns, command, out)
        for egress, was_up in zip(self.egress, before, strict=True):
            if egress.impairment.up != was_up:
                self.router.carrier(at_ns, egress.port, egress.impairment.up)
        self._speak(out)

    def _route_by(self, at_ns: Instant, command: SetRouting | ResetSession | SetSession | SetCarrier) -> None:
        if not isinstance(command, SetCarrier):
            obey(self.router, at_ns, command)

    def _speak(self, out: list[Transmit]) -> None:
        """Send what the routing core has to send, tell what it has to tell, and note when it is to be called."""
        cls = self._class_of[ROUTING_DSCP]
        packets, self.router.out = self.router.out, []
        for at_ns, port, packet in packets:
            self.egress[port].offer(at_ns, packet, cls, out)
            self._reschedule(port)
        if self._let:
            self._let_go(packets[-1][0] if packets else self.now_ns, out)
        if self.router.events:
            self._events += self.router.events
            self.router.events.clear()
        self._set_timer(3 * self._pairs, self.router.next_ns)
