"""A switch that goes from instant to instant over all its ports, in exact order of time.

Owns the loop. A departure on one port may change what another port does at that very instant, so this switch cannot
take port by port as `Switch` does. At one instant: commands, frames, timers, departures; departures by port
number, until nothing of that instant is left. `switchd.core.lossless` pauses neighbours, `switchd.core.credited` grants
them credit.
"""

from abc import abstractmethod
from heapq import heappop, heappush
from typing import Final

from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.units import NEVER, Instant
from switchd.core.forwarding import Forwarding
from switchd.core.routed import RoutedSwitch
from switchd.core.settings import SwitchConfig

_TIMER: Final = int(Rank.TIMER)
_DEPARTURE: Final = int(Rank.DEPARTURE)
assert _TIMER < _DEPARTURE, "the heap orders events of one instant by rank, then by number"


class OrderedSwitch(RoutedSwitch):
    """One switch in fabric time."""

    def __init__(self, config: SwitchConfig, forwarding: Forwarding, timers: int, start_ns: Instant = 0) -> None:
        super().__init__(config, forwarding, start_ns)
        self._let: list[int] = []
        """What departures of this instant have freed, for `_let_go`."""
        self._due: list[tuple[Instant, int, int]] = []
        """Heap of (instant, rank, number). An entry counts only while `_next` or `_timers` has its instant."""
        self._next: list[Instant] = [NEVER] * len(self.egress)
        """By port: its next departure."""
        self._timers: list[Instant] = [NEVER] * timers
        """By number of a timer: when it expires."""

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """Everything up to and including `until`, instant by instant."""
        out: list[Transmit] = []
        due = self._due
        for at_ns, rank, in_port, _, body in inputs:
            if due and due[0][0] < at_ns:
                self._through(at_ns - 1, out)
            if rank:
                self._take(at_ns, in_port, body, out)
            else:
                self._carry_out(at_ns, body, out)
        self._through(until, out)
        self.now_ns = until
        return out

    def next_timeout(self) -> Instant | None:
        """The next departure or timer."""
        due = self._due
        while due and not self._counts(*due[0]):
            heappop(due)
        return due[0][0] if due else None

    def _counts(self, at_ns: Instant, rank: int, number: int) -> bool:
        return (self._next if rank == _DEPARTURE else self._timers)[number] == at_ns

    def _through(self, until: Instant, out: list[Transmit]) -> None:
        """Timers and departures up to and including `until`."""
        due, upcoming, ports = self._due, self._next, self.egress
        while due and due[0][0] <= until:
            at_ns, rank, number = heappop(due)
            if not self._counts(at_ns, rank, number):
                continue
            if rank == _DEPARTURE:
                upcoming[number] = next_ns = ports[number].run(at_ns, out)
                if next_ns != NEVER:
                    heappush(due, (next_ns, _DEPARTURE, number))
            else:
                self._timers[number] = NEVER
                self._expire(at_ns, number, out)
            if self._let:
                self._let_go(at_ns, out)

    def _reschedule(self, port: int) -> None:
        """Note when a port has its next departure."""
        next_ns = self.egress[port].next_departure_ns
        if next_ns != self._next[port]:
            self._next[port] = next_ns
            if next_ns != NEVER:
                heappush(self._due, (next_ns, _DEPARTURE, port))

    def _set_timer(self, number: int, at_ns: Instant) -> None:
        if at_ns != self._timers[number]:
            self._timers[number] = at_ns
            if at_ns != NEVER:
                heappush(self._due, (at_ns, _TIMER, number))

    @abstractmethod
    def _expire(self, at_ns: Instant, number: int, out: list[Transmit]) -> None:
        """A timer has expired."""

    @abstractmethod
    def _let_go(self, at_ns: Instant, out: list[Transmit]) -> None:
        """Do what follows from what departures of this instant have freed, and empty `_let`."""
