"""The contract between a core (a NIC or a switch without I/O) and its driver.

A core is a plain object that lives in fabric time. It owns no socket, no clock and no thread. Two drivers call it and
nothing else does: `mrcfabric.runner` (real UDP, wall clock) and `mrcfabric.sim.simulator` (virtual time).

What a driver must do, in this order, as often as it likes:

1. `advance(inputs, until)`: inputs sorted, every one later than the previous `until` and not after this one.
2. Send every transmit it returned.
3. `drain_events()`.
4. Arrange to call again no later than `next_timeout()`, or when inputs come.

The result must not depend on how time is cut into calls: `advance(a, t1)` then `advance(b, t2)` equals
`advance(a + b, t2)`. Order inside one instant is the order of `Rank`, then of port, then of sequence number; an
arrival at t is seen before a departure at t.
"""

from enum import IntEnum
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from mrcfabric.units import NEVER, Buffer, Instant


class Rank(IntEnum):
    """Order of things that happen at the same nanosecond, first to last."""

    COMMAND = 0
    """An operator's or an application's request."""
    FRAME = 1
    """A packet arrives at a port."""
    TIMER = 2
    """One of the core's own timers expires."""
    DEPARTURE = 3
    """A port starts to serialize its next packet."""


class Input(NamedTuple):
    """One thing that happens to a core. Tuple order is time order; `body` is never compared.

    A driver may hand over plain tuples of the same, so a core takes them apart by place and not by name.
    """

    at_ns: Instant
    rank: int
    """Rank.COMMAND or Rank.FRAME."""
    port: int
    """Ingress port of a frame; 0 for commands."""
    sequence: int
    """Unique within (rank, port): the link's sequence number, or the driver's count of commands."""
    body: Any
    """A packet (from its first IPv6 header on, `Buffer`, owned by the core from now on), a link control frame
    (`mrcfabric.wire.link.ControlFrame`), or a command object."""


_instant: Final = itemgetter(0)


def split_due(waiting: list[Input], until: Instant) -> tuple[list[Input], list[Input], Instant]:
    """What is due up to and including `until`, in the order of `Input`; the rest, and its first instant (or NEVER)."""
    due: list[Input] = []
    later: list[Input] = []
    next_ns = NEVER
    for one in waiting:
        at_ns = one[0]
        if at_ns <= until:
            due.append(one)
        else:
            later.append(one)
            if at_ns < next_ns:
                next_ns = at_ns
    # By instants alone: to compare whole inputs takes four times as long, and few instants are the same.
    due.sort(key=_instant)
    before_ns: Instant = -1
    for place, one in enumerate(due):
        if one[0] == before_ns:
            _move_back(due, place)
        before_ns = one[0]
    return due, later, next_ns


def _move_back(inputs: list[Input], place: int) -> None:
    """Move an input to where it belongs among those before it, which are in order."""
    while place and inputs[place] < inputs[place - 1]:
        inputs[place - 1], inputs[place] = inputs[place], inputs[place - 1]
        place -= 1


Transmit: TypeAlias = tuple[int, Instant, Buffer]
"""One packet leaving a core, committed when its serialization starts: (port, arrival, packet).

The arrival is when the last bit is at the peer: departure + serialization + link delay. The packet is owned by the
driver from now on. A plain tuple, because one is made per packet and hop: a named one takes three times as long.
"""


class Event(Protocol):
    """Something that happened in a core: a small record with its instant.

    Each core's `events.py` has the concrete types.
    """

    @property
    def at_ns(self) -> Instant: ...

    def record(self) -> dict[str, Any]:
        """A flat dictionary for logs and traces: `at_ns`, `kind`, then the fields; only str, int, bool, None."""
        ...


Transmits: TypeAlias = list[Transmit]


class Node(Protocol):
    """The interface of a core to a driver. See the module text for the contract."""

    @property
    def name(self) -> str: ...

    @property
    def now_ns(self) -> Instant:
        """The `until` of the last advance; before the first one, the core's start instant."""
        ...

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """Do everything that happens up to and including `until`; transmits are in time order per port."""
        ...

    def next_timeout(self) -> Instant | None:
        """The next instant at which something happens without input, or None when nothing is pending."""
        ...

    def drain_events(self) -> list[Any]:
        """The events since the last call, in time order."""
        ...

    def counters(self) -> dict[str, Any]:
        """All counters and gauges as nested dictionaries of ints: cheap, read-only, for metrics and verdicts."""
        ...
