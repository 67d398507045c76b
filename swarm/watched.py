"""A core under watch: the same node to its driver, with every instant of it looked at.

A core does not depend on how its time is cut, so the wrapper may advance it from one instant at which something happens
to the next and look in between (`stepwise`), or only where its driver cuts (cheap, for long runs). Both give the same
trace; the swarm compares them.

Owns time and order: instants do not go back, transmits arrive after they were decided and in order per port, events
lie inside what was asked for, a core is never due in the past.
"""

from typing import Any, Protocol

from mrcfabric.node import Input, Node, Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.link import ControlFrame
from swarm.case import Case
from swarm.invariant import InvariantError


class Check(Protocol):
    """What is looked at around each step of one core."""

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """The core is about to do what happens up to `at_ns`."""
        ...

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """It has done so. Raises InvariantError."""
        ...


class CutShortError(Exception):
    """A case takes more steps than a case is given."""


class Steps:
    """How many steps the nodes of a case may take together."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self) -> None:
        """One step. Raises CutShortError."""
        self.left -= 1
        if self.left < 0:
            raise CutShortError


class Watched:
    """A node around a node."""

    def __init__(self, core: Node, checks: list[Check], stepwise: bool, steps: Steps) -> None:
        self._steps = steps
        self.core = core
        self._checks = checks
        self._stepwise = stepwise
        self._events: list[Any] = []
        self._arrived: dict[int, Instant] = {}

    @property
    def name(self) -> str:
        return self.core.name

    @property
    def now_ns(self) -> Instant:
        return self.core.now_ns

    def next_timeout(self) -> Instant | None:
        return self.core.next_timeout()

    def counters(self) -> dict[str, Any]:
        return self.core.counters()

    def drain_events(self) -> list[Any]:
        events, self._events = self._events, []
        return events

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """Everything up to and including `until`, instant by instant where that is asked for."""
        out: list[Transmit] = []
        position, count = 0, len(inputs)
        while self._stepwise:
            timeout = self.core.next_timeout()
            at_ns = NEVER if timeout is None else timeout
            if position < count and inputs[position][0] < at_ns:
                at_ns = inputs[position][0]
            if at_ns > until:
                break
            first = position
            while position < count and inputs[position][0] == at_ns:
                position += 1
            out += self._step(inputs[first:position], at_ns)
        if self.core.now_ns < until or position < count:
            out += self._step(inputs[position:], until)
        return out

    def _step(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        self._steps.take()
        core = self.core
        before_ns = core.now_ns
        if until <= before_ns:
            raise InvariantError("time", self.name, until, f"due at {until} ns when it is {before_ns} ns")
        for check in self._checks:
            check.before(inputs, until)
        transmits = core.advance(inputs, until)
        events = core.drain_events()
        self._in_time(transmits, events, before_ns, until)
        for check in self._checks:
            check.after(transmits, events, until)
        self._events += events
        return transmits

    def _in_time(self, transmits: list[Transmit], events: list[Any], before_ns: Instant, until: Instant) -> None:
        if self.core.now_ns != until:
            raise InvariantError("time", self.name, until, f"the core says it is {self.core.now_ns} ns")
        for port, arrival_ns, _ in transmits:
            if arrival_ns <= before_ns:
                raise InvariantError(
                    "time", self.name, until, f"port {port}: a packet arrives at {arrival_ns}, in the past"
                )
            if arrival_ns <= self._arrived.get(port, -1):
                raise InvariantError("time", self.name, until, f"port {port}: packets overtake each other")
            self._arrived[port] = arrival_ns
        last_ns = before_ns
        for event in events:
            if not last_ns <= event.at_ns <= until:
                raise InvariantError("time", self.name, until, f"an event of {event.at_ns} ns: {event.record()}")
            last_ns = event.at_ns
        timeout = self.core.next_timeout()
        if timeout is not None and timeout <= until:
            raise InvariantError("time", self.name, until, f"due again at {timeout} ns")


class Unruly:
    """A node whose links deliver some frames twice, some late, some harmed: what no fault of ours does and networks do.

    What happens to a frame depends on its number on its port alone, not on how time is cut.
    """

    def __init__(self, node: Watched, case: Case) -> None:
        self.core = node
        self._case = case
        self._delay_ns = 2 * case.topology.base_rtt_ns()
        self._streams: dict[int, Rng] = {}
        self.conjured = 0
        """Frames delivered a second time."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """What the node sends, and what the links make of it."""
        case = self._case
        out: list[Transmit] = []
        for transmit in self.core.advance(inputs, until):
            port, arrival_ns, packet = transmit
            rng = self._streams.get(port)
            if rng is None:
                rng = self._streams[port] = Rng(case.topology.seed, self.core.name, port)
            if rng.chance(case.copies_ppm):
                self.conjured += 1
                out.append((port, arrival_ns + 1 + rng.below(self._delay_ns), _copy(packet)))
            if rng.chance(case.harms_ppm):
                # In the ICRC, so that whoever gets it whole finds out.
                harmed = bytearray(packet)
                harmed[-1 - rng.below(4)] ^= 1 << rng.below(8)
                packet = ControlFrame(harmed) if isinstance(packet, ControlFrame) else harmed
                transmit = (port, arrival_ns, packet)
            if rng.chance(case.delays_ppm):
                transmit = (port, arrival_ns + 1 + rng.below(self._delay_ns), packet)
            out.append(transmit)
        return out


def _copy(packet: Buffer) -> Buffer:
    """Another packet of the same bytes; a link control frame cannot be changed, and stays what it is."""
    return packet if isinstance(packet, ControlFrame) else bytearray(packet)
