"""What must hold of one switch that routes for itself at every instant, converged or not.

Owns these checks: every change of the table is an event, and nothing else changes it; groups lead where a way up and
down can lead, unless somebody leaks; a port that has long had no carrier is in no group; sessions that are up have
their timers; neighbours are told what was chosen; no packet appears or vanishes.
"""

from typing import Any, Final

from mrcfabric.egress import REFUSALS
from mrcfabric.node import Input, Transmit
from mrcfabric.prefix import Prefix
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from swarm.invariant import InvariantError
from swarm.routing.expected import Graph
from switchd.core.events_routing import FibRepaired, FibWritten, SessionChange
from switchd.core.routing.rib import NOTHING
from switchd.core.routing.session import ESTABLISHED
from switchd.core.routing.timetable import Kind
from switchd.core.speaking import SpeakingLosslessSwitch, SpeakingSwitch

_OF_PORTS: Final = frozenset(REFUSALS)


class RoutingRules:
    """The checks of one life of one switch."""

    def __init__(self, topology: Topology, core: SpeakingSwitch | SpeakingLosslessSwitch, leaks: bool) -> None:
        self._core = core
        self._leaks = leaks
        self._router = core.router
        tier, _, self._number = topology.parse_node(core.name)
        self._is_t0 = tier == "t0"
        self._ups = frozenset(self._router.sessions)
        self._owners = Graph(topology, frozenset(), frozenset()).prefixes()
        self._table: dict[Prefix, tuple[int, ...]] = dict(self._router.writer.fib.table)
        self._by_text = {str(prefix): prefix for prefix in self._owners}
        self._sessions: dict[tuple[str, int], bool] = {}
        self._written_ns: Instant = -1
        self._offered: tuple[int, Any] = (-1, None)
        """How many batches the processor had done, and the state of the core, when neighbours were looked at last."""
        self._dark_ns: dict[int, Instant] = {}
        """Ports without carrier, and since when the core has been free to notice."""

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Nothing is to be seen before a step."""

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Raises InvariantError."""
        changed = False
        for event in events:
            if isinstance(event, FibWritten):
                self._wrote(event)
                changed = True
            elif isinstance(event, FibRepaired):
                changed = True
                if event.moved > event.flows:
                    raise self._broken("flows", event.at_ns, f"{event.moved} of {event.flows} flows moved")
            elif isinstance(event, SessionChange):
                self._turned(event)
        if changed or self._table != self._router.writer.fib.table:
            self._groups(at_ns)
            self._conserved(at_ns)
        self._carriers(at_ns)
        self._timers(at_ns)
        seen = self._router.processor.batches, self._router._state
        if self._router.processor.due_ns == NEVER and seen != self._offered:
            self._offered = seen
            self._offers(at_ns)

    def _broken(self, rule: str, at_ns: Instant, what: str) -> InvariantError:
        return InvariantError(rule, self._core.name, at_ns, what)

    def _wrote(self, event: FibWritten) -> None:
        prefix = self._by_text[event.prefix]
        if self._table.get(prefix, ()) != event.before:
            raise self._broken("event", event.at_ns, f"{prefix} led to {self._table.get(prefix)}, not {event.before}")
        if event.ports:
            self._table[prefix] = event.ports
        else:
            self._table.pop(prefix, None)
        if event.moved > event.flows:
            raise self._broken("flows", event.at_ns, f"{event.moved} of {event.flows} flows moved")
        least_ns = self._router.config.knobs.fib_write_ns
        if self._written_ns >= 0 and event.at_ns - self._written_ns < least_ns:
            took_ns = event.at_ns - self._written_ns
            raise self._broken("write", event.at_ns, f"{took_ns} ns after the write before, and one takes {least_ns}")
        self._written_ns = event.at_ns

    def _turned(self, event: SessionChange) -> None:
        key = event.protocol, event.port
        if self._sessions.get(key, False) == event.up:
            raise self._broken("session", event.at_ns, f"{event.protocol} of port {event.port} twice up={event.up}")
        self._sessions[key] = event.up

    def _groups(self, at_ns: Instant) -> None:
        table = self._router.writer.fib.table
        if table != self._table:
            raise self._broken("event", at_ns, "the table was changed without an event")
        for prefix, ports in table.items():
            if not ports or tuple(sorted(set(ports))) != ports or not self._ups.issuperset(ports):
                raise self._broken("group", at_ns, f"{prefix} leads to {ports}")
            if self._leaks:
                continue
            owner = self._owners[prefix]
            if self._is_t0 and owner == self._number:
                raise self._broken("group", at_ns, f"{prefix} is below it, and leads up to {ports}")
            if not self._is_t0 and ports != (owner,):
                raise self._broken("group", at_ns, f"{prefix} leads down to {ports}, and is below T0 {owner}")

    def _conserved(self, at_ns: Instant) -> None:
        core, router = self._core, self._router
        came = core.received + router.packets_sent
        dropped = sum(core.drops.values())
        ports = 0
        for egress in core.egress:
            refused = sum(count for reason, count in egress.drops.items() if reason in _OF_PORTS)
            ports += egress.packets + sum(egress.waiting_packets) + refused
        if came != dropped + ports:
            what = f"{came} packets came or were made, {dropped} were dropped, {ports} reached a port"
            raise self._broken("conservation", at_ns, what)

    def _offers(self, at_ns: Instant) -> None:
        """With no work left, neighbours are told, or are to be told, what was chosen, as the core's state asks for."""
        router = self._router
        for port in router._open:
            outbound = router.outbound[port]
            offers = {**outbound.told, **outbound._pending}
            for prefix in {*router.choices, *offers}:
                choice = router.choices.get(prefix, NOTHING)
                wanted = router._offer(port, prefix, choice)
                if offers.get(prefix) != wanted:
                    raise self._broken("offer", at_ns, f"port {port}: of {prefix} {offers.get(prefix)}, not {wanted}")

    def _carriers(self, at_ns: Instant) -> None:
        """A port without carrier for longer than it takes to believe it has no session, and is in no group."""
        router, knobs = self._router, self._router.config.knobs
        for port in self._ups:
            if self._core.egress[port].impairment.up:
                self._dark_ns.pop(port, None)
                continue
            if router._state.hung or port not in self._dark_ns:
                self._dark_ns[port] = at_ns
            if not knobs.bgp_fast_external_failover or at_ns <= self._dark_ns[port] + knobs.bgp_carrier_ns:
                continue
            if router.sessions[port].state == ESTABLISHED:
                raise self._broken("carrier", at_ns, f"port {port} has long had no carrier, and its session is up")
            if knobs.fib_local_repair and port not in router.writer._masked:
                raise self._broken("carrier", at_ns, f"port {port} has long had no carrier, and is in groups")

    def _timers(self, at_ns: Instant) -> None:
        router = self._router
        for port, session in router.sessions.items():
            if session.state != ESTABLISHED or not session._hold_ns:
                continue
            for kind, most_ns in ((Kind.HOLD, session._hold_ns), (Kind.KEEPALIVE, session._keepalive_ns)):
                due_ns = router._timetable.due(kind, port)
                if due_ns > at_ns + most_ns and (kind, port) not in router._deferred:
                    raise self._broken("timer", at_ns, f"port {port} has a session, and {kind.name} is due at {due_ns}")
