"""The way of routes into the table by which packets are forwarded: prefix by prefix, each takes its time.

Owns the queue, and the repair of groups at one stroke. A prefix that changes again while it waits is written once, with
its last value.
"""

from typing import Protocol

from mrcfabric.prefix import Prefix
from mrcfabric.units import NEVER, Instant
from switchd.core.events_routing import FibRepaired, FibWritten, RoutingEvent
from switchd.core.routing.timetable import Kind, Timetable
from switchd.core.settings_bgp import BgpKnobs


class Fib(Protocol):
    """The table by which packets are forwarded."""

    @property
    def table(self) -> dict[Prefix, tuple[int, ...]]:
        """Prefix -> the ports of its group."""
        ...

    def write(self, prefix: Prefix, ports: tuple[int, ...]) -> tuple[int, int]:
        """From now on a prefix leads to these ports; none: it has no route.

        Returns how many flows towards it were remembered, and how many of them leave elsewhere now.
        """
        ...

    def mask(self, port: int, out: bool) -> tuple[int, int]:
        """Leave a port out of all groups, or no longer; returns the same."""
        ...


class FibWriter:
    """What writes the table of one switch."""

    def __init__(self, fib: Fib, knobs: BgpKnobs, timetable: Timetable, events: list[RoutingEvent]) -> None:
        self.waiting: dict[Prefix, tuple[int, ...]] = {}
        """Prefixes that are not written yet, and the ports that they will lead to; in their order."""
        self.fib = fib
        self.changed_ns: Instant = -1
        """When the table was changed last; -1: never."""
        self._write_ns = knobs.fib_write_ns
        self._repair = knobs.fib_local_repair
        self._timetable = timetable
        self._events = events
        self._masked: set[int] = set()
        self._stuck = False
        self._swallowed: dict[Prefix, tuple[int, ...]] = {}
        """What should stand in the table and does not."""

    def settle(self, at_ns: Instant, prefix: Prefix, ports: tuple[int, ...]) -> None:
        """See to it that a prefix leads to these ports; none: it is to have no route."""
        stands = self._swallowed.get(prefix, self.fib.table.get(prefix, ()))
        if ports == self.waiting.get(prefix, stands):
            return
        self.waiting[prefix] = ports
        if self._timetable.due(Kind.FIB, 0) == NEVER:
            self._timetable.set(Kind.FIB, 0, at_ns + self._write_ns)

    def expire(self, at_ns: Instant) -> None:
        """The first prefix of the queue stands in the table from this instant on; the next one is begun."""
        prefix = next(iter(self.waiting))
        ports = self.waiting.pop(prefix)
        if self.waiting:
            self._timetable.set(Kind.FIB, 0, at_ns + self._write_ns)
        if self._stuck:
            self._swallowed[prefix] = ports
            return
        before = self.fib.table.get(prefix, ())
        if ports != before:
            self.changed_ns = at_ns
            flows, moved = self.fib.write(prefix, ports)
            self._events.append(FibWritten(at_ns, str(prefix), before, ports, flows, moved))

    def stick(self, at_ns: Instant, stuck: bool) -> None:
        """From now on writes are done and change nothing, or change the table again; then what is wrong is mended."""
        self._stuck = stuck
        swallowed, self._swallowed = self._swallowed, {}
        for prefix, ports in swallowed.items():
            self.settle(at_ns, prefix, self.waiting.get(prefix, ports))

    def mask(self, at_ns: Instant, port: int, out: bool) -> None:
        """Leave a port out of all groups at once, or no longer, where groups are repaired so."""
        if not self._repair or (port in self._masked) == out:
            return
        (self._masked.add if out else self._masked.discard)(port)
        self.changed_ns = at_ns
        self._events.append(FibRepaired(at_ns, port, not out, *self.fib.mask(port, out)))
