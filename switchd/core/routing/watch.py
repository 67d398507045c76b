"""The BFD sessions of a switch, one beside each session of BGP, where that is asked for.

Owns their timers, their packets and their events. `liveness` is one session.
"""

from collections.abc import Callable

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire import bfd
from switchd.core.events_routing import RoutingEvent, SessionChange
from switchd.core.routing.config import RoutingConfig
from switchd.core.routing.liveness import Liveness
from switchd.core.routing.timetable import Kind, Timetable


class Watch:
    """All of one switch; none, unless its knobs say so. Methods that say so return whether a neighbour was lost."""

    def __init__(
        self, config: RoutingConfig, timetable: Timetable, send: Callable[[Instant, int, bytearray], None],
        events: list[RoutingEvent], start_ns: Instant,
    ) -> None:  # fmt: skip
        knobs = config.knobs
        self._neighbors = {neighbor.port: neighbor for neighbor in config.neighbors if knobs.bfd}
        self._sessions = {
            port: Liveness(knobs, port + 1, Rng(config.seed, "bfd", config.name, port)) for port in self._neighbors
        }
        self._timetable = timetable
        self._send = send
        self._events = events
        for port in self._sessions:
            timetable.set(Kind.BFD, port, start_ns + 1)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._sessions)

    @property
    def up(self) -> int:
        """How many are up."""
        return sum(one.state == bfd.UP for one in self._sessions.values())

    def is_up(self, port: int) -> bool | None:
        """Whether the one of a port is up; None: it has none."""
        return self._sessions[port].state == bfd.UP if port in self._sessions else None

    def start(self, at_ns: Instant, port: int) -> None:
        """The port can be used."""
        if port in self._sessions:
            self._sessions[port].start(at_ns)
            self._flush(at_ns, port)

    def stop(self, at_ns: Instant, port: int) -> None:
        """The port has no carrier."""
        if port in self._sessions:
            if self._sessions[port].stop():
                self._events.append(SessionChange(at_ns, port, "bfd", False, "carrier"))
            self._flush(at_ns, port)

    def hear(self, at_ns: Instant, port: int, said: bfd.Bfd) -> bool:
        """Take a packet; whether the neighbour was lost by it."""
        session = self._sessions.get(port)
        if session is None:
            return False
        before = session.state
        session.hear(at_ns, said)
        lost = before == bfd.UP != session.state
        if session.state == bfd.UP != before:
            self._events.append(SessionChange(at_ns, port, "bfd", True, ""))
        elif lost:
            self._events.append(SessionChange(at_ns, port, "bfd", False, "neighbor"))
        self._flush(at_ns, port)
        return lost

    def expire(self, at_ns: Instant, kind: Kind, port: int) -> bool:
        """A timer has expired; whether the neighbour is lost."""
        session = self._sessions[port]
        lost = False
        if kind == Kind.DETECT:
            lost = session.expire(at_ns)
        elif session.send_ns == NEVER:
            session.start(at_ns)
        else:
            session.send(at_ns)
        if lost:
            self._events.append(SessionChange(at_ns, port, "bfd", False, "silence"))
        self._flush(at_ns, port)
        return lost

    def _flush(self, at_ns: Instant, port: int) -> None:
        session, neighbor = self._sessions[port], self._neighbors[port]
        said, session.out = session.out, []
        for one in said:
            packet = bfd.encode(neighbor.own_address, neighbor.address, bfd.SOURCE_PORT_MIN + port, one)
            self._send(at_ns, port, packet)
        self._timetable.set(Kind.BFD, port, session.send_ns)
        self._timetable.set(Kind.DETECT, port, session.detect_ns)
