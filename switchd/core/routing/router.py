"""The routing core of one switch: hears its neighbours, chooses routes, fills the table, and tells neighbours.

Owns the order of things and what follows from what. Packets go out through `out`, and `Fib` is what is written. A route
goes through here so: heard (`session`), waits for the processor (`work`), is chosen (`rib`), waits to be written
(`writer`) and to be told (`outbound`).

Sources: RFC 4271 9 (what to do with routes), RFC 7938 5 to 7 (BGP in data centres), RFC 4724 4.2 (routes that
count until neighbours have told theirs anew), RFC 5882 4 (BFD beside a session).
"""

from typing import Final

from mrcfabric.errors import RefusedError, WireError
from mrcfabric.prefix import Prefix
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire import bfd, local, tcp
from mrcfabric.wire.bgp import CEASE_BFD_DOWN, CEASE_RESET
from mrcfabric.wire.bgp_update import IGP, Update
from mrcfabric.wire.tcp import Segment
from switchd.core.events_routing import RouteDamped, RoutesHeard, RoutingEvent, SessionChange
from switchd.core.routing.config import RoutingConfig
from switchd.core.routing.dampening import CHANGE, WITHDRAWAL, Dampening
from switchd.core.routing.outbound import Offer, Outbound
from switchd.core.routing.rib import NOTHING, OWN, Choice, Rib, Route, route_of
from switchd.core.routing.session import ESTABLISHED, Session
from switchd.core.routing.timetable import Kind, Timer, Timetable
from switchd.core.routing.trouble import OUTSIDE, State
from switchd.core.routing.watch import Watch
from switchd.core.routing.work import Processor, Task, Work
from switchd.core.routing.writer import Fib, FibWriter
from switchd.core.routing.zombies import Zombies

HOP_LIMIT: Final = 1
"""Of BGP's packets, as FRR sends them to a neighbour on the same link."""
STRANGER: Final = "routing_stranger"
"""A packet that is not from the neighbour of its port, or not for this switch."""


class Router:
    """The routing core of one switch."""

    def __init__(self, config: RoutingConfig, fib: Fib, start_ns: Instant = 0) -> None:
        knobs = config.knobs
        self.config = config
        self.out: list[tuple[Instant, int, bytearray]] = []
        """(instant, port, packet) to send; its owner empties it."""
        self.events: list[RoutingEvent] = []
        """Likewise: the same list for ever."""
        self.bad: dict[str, int] = {}
        """Packets from the wire that were thrown away, by reason."""
        self.packets_heard = self.packets_sent = 0
        self.rib = Rib(knobs.bgp_maximum_paths, knobs.bgp_multipath_relax)
        self.rib.own.update(dict.fromkeys(config.own))
        self.processor = Processor(knobs.bgp_batch_ns, knobs.bgp_prefix_ns)
        self._fib = fib
        self._knobs = knobs
        self._timetable = Timetable()
        self.writer = FibWriter(fib, knobs, self._timetable, self.events)
        self.dampening = Dampening(knobs) if knobs.bgp_dampening else None
        self.choices: dict[Prefix, Choice] = {}
        """What was decided of each prefix to which there is a route."""
        self._links: dict[int, bool] = {}
        """By port: whether it can be used, as far as the switch believes."""
        self._carriers: dict[int, bool] = {}
        """By port: its carrier at this very instant."""
        self._open: set[int] = set()
        """Ports of neighbours that are told of routes."""
        self._state = State()
        self._zombies = Zombies()
        self._deferred: dict[Timer, None] = {}
        """Timers that expired while the core hung."""
        self._silent: dict[int, None] = {}
        """Ports whose neighbour BFD has lost meanwhile."""
        self.sessions: dict[int, Session] = {}
        self.watch = Watch(config, self._timetable, self._put, self.events, start_ns)
        self.outbound: dict[int, Outbound] = {}
        self._neighbors = {neighbor.port: neighbor for neighbor in config.neighbors}
        for port, neighbor in self._neighbors.items():
            self._links[port] = self._carriers[port] = True
            self.sessions[port] = Session(config, neighbor, self, start_ns)
            self.outbound[port] = Outbound(neighbor.own_address)
            # Nothing leaves at the instant at which a core begins.
            self._timetable.set(Kind.RETRY, port, start_ns + 1)
        for prefix in self.rib.own:
            self.choices[prefix] = self.rib.choose(prefix)
        self._stale: dict[int, dict[Prefix, None]] = {}
        """By port: what counts since a warm start, and its neighbour has not told again."""
        if not start_ns:
            self._begin_warm()

    def _begin_warm(self) -> None:
        """Know, and have in the table, what is known in a fabric without faults."""
        for port, routes in self.config.warm.items():
            for prefix, as_path in routes.items():
                self.rib.learn(port, prefix, Route(as_path, IGP, (), self._neighbors[port].identifier))
            self._stale[port] = dict.fromkeys(routes)
            self._timetable.set(Kind.STALE, port, self._knobs.bgp_stalepath_ns)
        for prefix in self.rib.prefixes():
            choice = self.choices[prefix] = self.rib.choose(prefix)
            if OWN not in choice.ports:
                self._fib.write(prefix, choice.ports)

    # What the switch tells it.

    @property
    def next_ns(self) -> Instant:
        """When something happens without input."""
        return self._timetable.next_ns

    def hear(self, at_ns: Instant, port: int, packet: Buffer) -> None:
        """Take a packet for the switch itself. Any bytes will do; nothing raises."""
        self.packets_heard += 1
        neighbor = self._neighbors.get(port)
        try:
            found = local.parse(packet)
            if neighbor is None or (found.source, found.destination) != (neighbor.address, neighbor.own_address):
                raise WireError(STRANGER)
            if not self._links[port]:
                return
            if found.next_header == local.NEXT_HEADER_TCP:
                self.sessions[port].hear(at_ns, tcp.parse(found))
            elif self.watch.hear(at_ns, port, bfd.parse(found)):
                self._fell_silent(at_ns, port)
        except WireError as error:
            self.bad[error.reason] = self.bad.get(error.reason, 0) + 1

    def carrier(self, at_ns: Instant, port: int, up: bool) -> None:
        """A port has lost its carrier, or has it again."""
        self._carriers[port] = up
        believed = self._links.get(port, True)
        due_ns = NEVER if up == believed else at_ns + self._knobs.bgp_carrier_ns
        self._timetable.set(Kind.CARRIER, port, due_ns)

    def run(self, until: Instant) -> None:
        """Everything that is due up to and including `until`."""
        while (taken := self._timetable.take(until)) is not None:
            self._expire(*taken)

    def set_state(self, at_ns: Instant, state: State) -> None:
        """From now on the core is in this state of trouble, or in none."""
        before, self._state = self._state, state
        self.processor.slower = state.slower
        for session in self.sessions.values():
            session.deaf = state.hung
        if before.hung and not state.hung:
            self._wake(at_ns)
        if before.stuck != state.stuck:
            self.writer.stick(at_ns, state.stuck)
        for (port, prefix), route in self._zombies.keep(state).items():
            if self.rib.learn(port, prefix, route):
                self._work(at_ns, Work(Task.REUSE, port, 1, prefix=prefix))
        if before.told() != state.told():
            self._work(at_ns, Work(Task.TELL, 0, len(self.choices)))

    def reset(self, at_ns: Instant, port: int) -> None:
        """End the session with the neighbour of a port; it begins anew after a while. Raises RefusedError."""
        self._named(port).restart(at_ns, "reset", CEASE_RESET)

    def hold_down(self, at_ns: Instant, port: int, down: bool) -> None:
        """Keep the session with the neighbour of a port from being, or no longer. Raises RefusedError."""
        self._named(port).hold_down(at_ns, down, self._links[port])

    def _named(self, port: int) -> Session:
        if port not in self.sessions:
            raise RefusedError(f"port {port} leads to no neighbour; {', '.join(map(str, self.sessions))} do")
        return self.sessions[port]

    def _wake(self, at_ns: Instant) -> None:
        """The core goes on: it reads what has come meanwhile, then does what should have been done."""
        for session in self.sessions.values():
            session.catch_up(at_ns)
        for port in self._silent:
            self.sessions[port].restart(at_ns, "bfd", CEASE_BFD_DOWN)
        self._silent.clear()
        for kind, port in self._deferred:
            self._timetable.set(kind, port, at_ns)
        self._deferred.clear()

    # What sessions tell it (`session.Host`).

    def timer(self, kind: Kind, port: int, at_ns: Instant) -> None:
        """`Host.timer`."""
        self._deferred.pop((kind, port), None)
        self._timetable.set(kind, port, at_ns)

    def send(self, at_ns: Instant, port: int, segment: Segment) -> None:
        """`Host.send`."""
        neighbor = self._neighbors[port]
        packet = tcp.encode(neighbor.own_address, neighbor.address, segment, HOP_LIMIT)
        self._put(at_ns, port, packet)

    def _put(self, at_ns: Instant, port: int, packet: bytearray) -> None:
        self.packets_sent += 1
        self.out.append((at_ns, port, packet))

    def opened(self, at_ns: Instant, port: int) -> None:
        """`Host.opened`."""
        self.events.append(SessionChange(at_ns, port, "bgp", True, ""))
        self.writer.mask(at_ns, port, False)
        self._work(at_ns, Work(Task.OPENED, port, len(self.choices)))

    def lost(self, at_ns: Instant, port: int, why: str) -> None:
        """`Host.lost`."""
        self.events.append(SessionChange(at_ns, port, "bgp", False, why))
        self._open.discard(port)
        self.outbound[port].forget()
        self.writer.mask(at_ns, port, True)
        self._work(at_ns, Work(Task.LOST, port, len(self.rib.prefixes_of(port))))

    def heard(self, at_ns: Instant, port: int, update: Update) -> None:
        """`Host.heard`."""
        if update.reach or update.unreach:
            self.events.append(RoutesHeard(at_ns, port, len(update.reach), len(update.unreach)))
        self._work(at_ns, Work(Task.UPDATE, port, len(update.reach) + len(update.unreach), update))

    # Timers.

    def _expire(self, at_ns: Instant, kind: Kind, port: int) -> None:
        if self._state.hung and kind not in OUTSIDE:
            self._deferred[kind, port] = None
            return
        if kind == Kind.FIB:
            self.writer.expire(at_ns)
            if self._knobs.bgp_suppress_fib_pending:
                self._advertise_all(at_ns)
        elif kind == Kind.PROCESSOR:
            done = self.processor.take(at_ns)
            self._timetable.set(Kind.PROCESSOR, 0, self.processor.due_ns)
            self._carry_out(at_ns, done)
        elif kind == Kind.CARRIER:
            self._believe(at_ns, port)
        elif kind in (Kind.DETECT, Kind.BFD):
            if self.watch.expire(at_ns, kind, port):
                self._fell_silent(at_ns, port)
        elif kind == Kind.ADVERTISE:
            self._advertise(at_ns, port)
        elif kind == Kind.STALE:
            if self.sessions[port].state != ESTABLISHED:
                self.writer.mask(at_ns, port, True)
            self._work(at_ns, Work(Task.STALE, port, len(self._stale.get(port, ()))))
        elif kind == Kind.REUSE:
            self._use_again(at_ns)
        else:
            self.sessions[port].expire(at_ns, kind)

    def _believe(self, at_ns: Instant, port: int) -> None:
        """The carrier of a port has stood as it does for long enough."""
        up = self._carriers[port]
        if port not in self._neighbors:
            self._links[port] = up
            for prefix, own in self.config.own.items():
                if own == port:
                    self._work(at_ns, Work(Task.OWN, port, 1, prefix=prefix, there=up))
            return
        if not self._knobs.bgp_fast_external_failover:
            return
        self._links[port] = up
        if up:
            self.sessions[port].start(at_ns)
            self.watch.start(at_ns, port)
            return
        self.watch.stop(at_ns, port)
        self.sessions[port].stop(at_ns, "carrier", CEASE_RESET)
        self.writer.mask(at_ns, port, True)
        if port in self._stale:
            self._timetable.set(Kind.STALE, port, at_ns)

    def _fell_silent(self, at_ns: Instant, port: int) -> None:
        """BFD has lost the neighbour of a port."""
        if self._state.hung:
            self._silent[port] = None
        else:
            self.sessions[port].restart(at_ns, "bfd", CEASE_BFD_DOWN)

    # Routes.

    def _work(self, at_ns: Instant, work: Work) -> None:
        self.processor.put(at_ns, work)
        self._timetable.set(Kind.PROCESSOR, 0, self.processor.due_ns)

    def _carry_out(self, at_ns: Instant, batch: list[Work]) -> None:
        """Do what a batch asks for, decide anew where something has changed, and tell neighbours."""
        touched: dict[Prefix, None] = {}
        for work in batch:
            if work.update is not None:
                self._take_update(at_ns, work.port, work.update, touched)
            elif work.task in (Task.LOST, Task.STALE):
                stale = self._stale.pop(work.port, {})
                for prefix in self.rib.prefixes_of(work.port) if work.task == Task.LOST else stale:
                    if not self._zombies.swallow(work.port, prefix, None):
                        self.rib.learn(work.port, prefix, None)
                        touched[prefix] = None
            elif work.task == Task.OPENED and self.sessions[work.port].state == ESTABLISHED:
                self._open.add(work.port)
                self.outbound[work.port].end_of_rib = True
                self._offer_all(work.port)
            elif work.task == Task.TELL:
                for port in sorted(self._open):
                    self._offer_all(port)
            elif work.prefix is not None:
                if work.task == Task.OWN and work.there:
                    self.rib.own[work.prefix] = None
                elif work.task == Task.OWN:
                    self.rib.own.pop(work.prefix, None)
                touched[work.prefix] = None
        for prefix in sorted(touched):
            self._decide(at_ns, prefix)
        self._advertise_all(at_ns)

    def _take_update(self, at_ns: Instant, port: int, update: Update, touched: dict[Prefix, None]) -> None:
        stale = self._stale.get(port, {})
        for prefix in (*update.unreach, *(stale if update.end_of_rib else ())):
            self._learn(at_ns, port, prefix, None, touched)
        if update.end_of_rib and self._stale.pop(port, None) is not None:
            self._timetable.set(Kind.STALE, port, NEVER)
        if update.attributes is None:
            return
        route: Route | None = route_of(update.attributes, self.sessions[port].identifier)
        # RFC 4271 9.1.2: a path with the own AS number in it is a loop.
        if self.config.asn in update.attributes.as_path:
            route = None
        for prefix in update.reach:
            stale.pop(prefix, None)
            self._learn(at_ns, port, prefix, route, touched)

    def _learn(
        self, at_ns: Instant, port: int, prefix: Prefix, route: Route | None, touched: dict[Prefix, None]
    ) -> None:
        before = self.rib.heard.get(prefix, {}).get(port)
        if self._zombies.swallow(port, prefix, route) or not self.rib.learn(port, prefix, route):
            return
        touched[prefix] = None
        damping = self.dampening
        if damping is None or before is None:
            return
        if damping.flap(at_ns, port, prefix, WITHDRAWAL if route is None else CHANGE):
            penalty = round(damping.penalty(at_ns, port, prefix))
            self.events.append(RouteDamped(at_ns, port, str(prefix), True, penalty))
        self._timetable.set(Kind.REUSE, 0, damping.next_ns)

    def _use_again(self, at_ns: Instant) -> None:
        damping = self.dampening
        assert damping is not None
        for port, prefix in damping.reuse(at_ns):
            penalty = round(damping.penalty(at_ns, port, prefix))
            self.events.append(RouteDamped(at_ns, port, str(prefix), False, penalty))
            self._work(at_ns, Work(Task.REUSE, port, 1, prefix=prefix))
        self._timetable.set(Kind.REUSE, 0, damping.next_ns)

    def _decide(self, at_ns: Instant, prefix: Prefix) -> None:
        """Choose the routes of a prefix anew; write and offer what has changed."""
        damped = self.dampening.damped if self.dampening is not None else {}
        without = {port for port in self.rib.heard.get(prefix, ()) if (port, prefix) in damped}
        before = self.choices.get(prefix, NOTHING)
        choice = self.rib.choose(prefix, without)
        if choice == before:
            return
        if choice.route is None:
            del self.choices[prefix]
        else:
            self.choices[prefix] = choice
        # What is the switch's own it finds without the table.
        self.writer.settle(at_ns, prefix, () if OWN in choice.ports else choice.ports)
        for port in sorted(self._open):
            self.outbound[port].offer(prefix, self._offer(port, prefix, choice))

    def _offer(self, port: int, prefix: Prefix, choice: Choice) -> Offer | None:
        """What the neighbour of a port is told of a prefix that was chosen so."""
        offer = self._state.offer(self.config.asn, prefix, choice)
        if offer is not None and not self._state.leaks(prefix):
            # A route is not told to the one it is from.
            if choice.best == port:
                return None
            if self._knobs.bgp_sender_loop_detection and self._neighbors[port].asn in offer.as_path:
                return None
        return offer

    def _offer_all(self, port: int) -> None:
        # Also what was told and is no longer known: the prefix of a leak that is over.
        for prefix in dict.fromkeys((*self.choices, *self.outbound[port].told)):
            self.outbound[port].offer(prefix, self._offer(port, prefix, self.choices.get(prefix, NOTHING)))

    def _advertise_all(self, at_ns: Instant) -> None:
        for port in sorted(self._open):
            self._advertise(at_ns, port)

    def _advertise(self, at_ns: Instant, port: int) -> None:
        """Tell a neighbour what is to be told, unless it was told something too short a time ago."""
        outbound = self.outbound[port]
        if port not in self._open or not outbound.waiting or self._timetable.due(Kind.ADVERTISE, port) != NEVER:
            return
        pending = self._knobs.bgp_suppress_fib_pending
        held = {prefix for prefix, ports in self.writer.waiting.items() if ports} if pending else set()
        messages = outbound.take(held)
        session = self.sessions[port]
        session.tell(at_ns, messages)
        interval_ns = self._knobs.bgp_advertisement_interval_ns
        if messages and interval_ns:
            self._timetable.set(Kind.ADVERTISE, port, at_ns + session.jittered(interval_ns))
