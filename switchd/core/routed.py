"""A switch whose forwarding stands behind `switchd.core.forwarding`: one step per packet, then the same queues.

Owns the loop over frames for such a forwarding, and what the forwarding hears of carriers. `switchd.core.switch` has
commands, counters and queues, and the loop of a switch that forwards by uSIDs.
"""

from typing import Any

from mrcfabric.node import Input, Transmit
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.link import ControlFrame
from mrcfabric.witness import Witness
from switchd.core.commands import Command
from switchd.core.events import HashChange
from switchd.core.fib import CLASS_SHIFT
from switchd.core.forwarding import Forwarding
from switchd.core.forwarding.ecmp import EcmpForwarding
from switchd.core.forwarding.witnessed import WitnessedForwarding
from switchd.core.settings import SwitchConfig
from switchd.core.switch import Switch


class RoutedSwitch(Switch):
    """One switch in fabric time, with queues of two classes."""

    def __init__(self, config: SwitchConfig, forwarding: Forwarding, start_ns: Instant = 0) -> None:
        self._ecmp = forwarding if isinstance(forwarding, EcmpForwarding) else None
        super().__init__(config, start_ns)
        self._forwarding: Forwarding = forwarding
        self._plain_forwarding = forwarding

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """Forward what arrived and commit departures up to and including `until`."""
        out: list[Transmit] = []
        ways = self._plain_forwarding
        for at_ns, rank, in_port, _, body in inputs:
            # A frame comes before a change of the ways at its instant.
            if at_ns > ways.next_change_ns:
                self._events += ways.follow(at_ns - 1)
            if rank:
                self._take(at_ns, in_port, body, out)
            else:
                self._carry_out(at_ns, body, out)
        if until >= ways.next_change_ns:
            self._events += ways.follow(until)
        self._run(until, out)
        return out

    def next_timeout(self) -> Instant | None:
        """The next departure or change of the ways."""
        soonest = min(self._timeout, self._plain_forwarding.next_change_ns)
        return None if soonest == NEVER else soonest

    def counters(self) -> dict[str, Any]:
        """Those of `Switch`, and those of the forwarding."""
        return {**super().counters(), **self._forwarding.counters()}

    def set_witness(self, witness: Witness | None) -> None:
        """As `Switch`; the witness also hears how the forwarding chose."""
        super().set_witness(witness)
        plain = self._plain_forwarding
        self._forwarding = plain if witness is None else WitnessedForwarding(plain, witness)

    def _take(self, at_ns: Instant, in_port: int, packet: Buffer, out: list[Transmit]) -> None:
        """Forward a packet that arrived, or drop it with a reason."""
        self.received += 1
        if not self.forwarding or isinstance(packet, ControlFrame):
            self._lose(at_ns, packet, "link_control" if self.forwarding else "frozen")
            return
        routed = self._forwarding.route(at_ns, in_port, packet)
        if isinstance(routed, str):
            self._lose(at_ns, packet, routed)
            return
        port, packet = routed
        egress = self.egress[port]
        egress.offer(at_ns, packet, self._classes[(packet[0] << 8 | packet[1]) >> CLASS_SHIFT], out)
        self._visit(egress)

    def _obey(self, at_ns: Instant, command: Command, out: list[Transmit]) -> None:
        before = [egress.impairment.up for egress in self.egress]
        super()._obey(at_ns, command, out)
        for egress, was_up in zip(self.egress, before, strict=True):
            if egress.impairment.up != was_up:
                self._forwarding.carrier(at_ns, egress.port, egress.impairment.up)

    def _set_forwarding(self, at_ns: Instant, on: bool, out: list[Transmit]) -> None:
        super()._set_forwarding(at_ns, on, out)
        for egress in self.egress:
            self._visit(egress)

    def _set_hash(self, at_ns: Instant, common: bool) -> None:
        if self._ecmp is None:
            return
        # Where one fault ends and another goes on, both commands come at one instant: only what results is told.
        self._events = [one for one in self._events if not (isinstance(one, HashChange) and one.at_ns == at_ns)]
        moved = self._ecmp.set_common(at_ns, common)
        if moved is not None:
            self._events.append(HashChange(at_ns, common, *moved))
