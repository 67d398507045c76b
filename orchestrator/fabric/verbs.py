"""A fabric as its users see it, launched here or running elsewhere: find parts, break them, wait, read.

Declares what each kind of fabric does in its own way (`orchestrator.fabric.launched`,
`orchestrator.client.agent_fabric`), and builds the methods that both share on top. `orchestrator.api.scripting` adds
workloads and watches, which need a whole run.
"""

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from nicd.programs.program import Program
from orchestrator.fabric import arguments
from orchestrator.fabric.finder import Finder, Names, Narrowing
from orchestrator.fabric.readings import ClockReading, Death, Untold
from orchestrator.faults.fault import Fault, Figure, Window

if TYPE_CHECKING:
    from orchestrator.fabric.polling import Glances

T = TypeVar("T")

WAIT_WALL_S: Final = 60.0
POLL_S: Final = 0.01
SOON_LEADS: Final = (0, 1, 2, 4, 8, 16, 32)
"""How far beyond the next instant to start a fault that is to start soon, try by try, as a multiple of the lead of a
command sent now: on a busy machine the fabric may pass an instant before the command for it arrives."""


class Verbs(Finder, ABC):
    """A fabric as scripts see it."""

    def __init__(self, topology: Topology, owner: str = "") -> None:
        """`owner`: who owns the faults that `add_fault` injects."""
        self.topology = topology
        self.owner = owner
        self._ids = itertools.count(1)
        self._held_ns: Instant | None = None
        """Where this object holds fabric time."""

    # What each kind of fabric implements.

    @abstractmethod
    async def call(
        self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        """Ask a node's daemon an op of its control channel.

        With `timeout_s` None, `AnswerWait` decides how long to wait.
        """

    @abstractmethod
    async def counters(self, nodes: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
        """The counters of these nodes (None: all) that are not down: plain numbers in tables."""

    @abstractmethod
    async def glances(self, nodes: Sequence[str] | None = None) -> "Glances":
        """The glances of these daemons (None: all). Cheap to repeat (`orchestrator.fabric.polling`)."""

    @abstractmethod
    async def metrics(self, node: str) -> str:
        """What a node counts, as Prometheus text (docs/METRICS.md)."""

    @abstractmethod
    async def fidelity(self) -> dict[str, Any]:
        """How faithful the emulation has been since the launch, in all lives (`measures.sums.fidelity`)."""

    @abstractmethod
    async def host_pairs(self) -> list[dict[str, Any]]:
        """What is known of each pair of hosts (`orchestrator.hosts.clock.host_pairs`); empty for one host."""

    @abstractmethod
    async def clock(self) -> ClockReading:
        """Read what time it is, how far it may go, and whether anything is pending."""

    @abstractmethod
    async def limit(self, at_ns: Instant | None, owner: str = "") -> Instant | None:
        """Let everything up to and including `at_ns` happen, then stand still; None: let time go on for good.

        `owner` controls time as long as there is a limit; "" means the user of this object.
        """

    @abstractmethod
    async def load(self, program: Program, at_ns: Instant | None = None) -> None:
        """Give every NIC of a program its part."""

    @abstractmethod
    async def stop_work(self, program: Program) -> dict[str, str]:
        """Have all living NICs of a program end and forget it; returns NIC -> error where that failed."""

    @abstractmethod
    async def inject(self, fault: Fault) -> Fault:
        """Inject a fault whose windows all lie in the future. Returns it as resolved, once the daemons have been told.

        Raises ConfigError for a fault that this fabric cannot have, RefusedError for one that comes too late.
        """

    @abstractmethod
    async def heal(self, fault_id: str, at_ns: Instant | None = None) -> Fault | None:
        """End a fault at an instant, by default as soon as possible; returns what is left of it."""

    @abstractmethod
    async def live_faults(self) -> list[Fault]:
        """Every fault that has not ended, whoever injected it."""

    @abstractmethod
    async def deaths(self) -> list[Death]:
        """Daemons that ended although nobody asked for it."""

    @abstractmethod
    async def totals(self) -> dict[str, int]:
        """What all nodes have counted since the launch, in all their lives (`orchestrator.measures.sums.totals`)."""

    @abstractmethod
    async def untold(self) -> list[Untold]:
        """Lives that ended before they reported all their counts.

        Somebody killed them from outside, or their host was lost. Each has the two instants between which the totals
        lack its counts.
        """

    # Breaking.

    async def add_fault(
        self,
        kind: str,
        *names: Names,
        at_ns: Instant | None = None,
        for_ns: int | None = None,
        figures: Mapping[str, Figure] | None = None,
        title: str = "",
        **narrowed: Unpack[Narrowing],
    ) -> Fault:
        """Break the parts that names, globs and the keywords of `find_links` select; returns the fault.

        docs/FAULTS.md lists `kind` and `figures`. `at_ns` None: as soon as possible. `for_ns` None: until it is healed.
        Raises ConfigError, RefusedError.
        """
        targets = tuple(self.targets(kind, *names, **narrowed))
        given, called = arguments.table("figures", figures), arguments.text("title", title)
        for key, value in (("at_ns", at_ns), ("for_ns", for_ns)):
            if value is not None:
                arguments.instant(key, value)
        number = f"{self.owner or 'script'}-{next(self._ids)}"

        def beginning(start_ns: Instant) -> Fault:
            window = Window(start_ns, NEVER if for_ns is None else start_ns + for_ns, given)
            return Fault(number, kind, targets, (window,), self.owner, called)

        if at_ns is None and self._held_ns is not None:
            at_ns = self._held_ns + 1
        if at_ns is None:
            return await self.inject_soon(beginning)
        return await self.inject(beginning(at_ns))

    async def inject_soon(self, beginning: Callable[[Instant], Fault]) -> Fault:
        """Inject a fault as soon as possible; returns it as resolved.

        `beginning` makes the fault, given its first instant. That instant is further ahead at each try, after the
        fabric has passed the one before. Raises as `inject`.
        """
        for lead in SOON_LEADS:
            clock = await self.clock()
            fault = beginning(clock.next_ns + lead * (clock.soon_ns - clock.front_ns))
            try:
                return await self.inject(fault)
            except RefusedError:
                if lead == SOON_LEADS[-1] or (await self.clock()).front_ns < fault.start_ns:
                    raise
        raise AssertionError("the last try returns or raises")

    @asynccontextmanager
    async def fault(
        self, kind: str, *names: Names, figures: Mapping[str, Figure] | None = None, **narrowed: Unpack[Narrowing]
    ) -> AsyncIterator[Fault]:
        """Break parts for the length of a block: `add_fault` at its start, healed at its end."""
        fault = await self.add_fault(kind, *names, figures=figures, **narrowed)
        if self._held_ns is None:
            await self.reached(fault.start_ns)
        try:
            yield fault
        finally:
            await self._end(fault)

    async def _end(self, fault: Fault) -> None:
        left = await self._heal(fault.id)
        if left is not None and self._held_ns is None:
            await self.reached(left.end_ns)

    async def heal_all(self) -> list[str]:
        """End every fault that this object's owner injected; returns their ids."""
        mine = [fault.id for fault in await self.live_faults() if fault.owner == self.owner]
        for one in mine:
            await self._heal(one)
        return mine

    async def _heal(self, fault_id: str) -> Fault | None:
        """End one fault; None when it had already ended."""
        try:
            return await self.heal(fault_id, None if self._held_ns is None else self._held_ns + 1)
        except RefusedError:
            if any(one.id == fault_id for one in await self.live_faults()):
                raise
            return None

    # Time.

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Instant]:
        """Hold fabric time in the block, at the instant that it yields.

        What is broken or healed in the block takes effect right after that instant. Raises RefusedError when another
        owner controls time.
        """
        self._held_ns = await self.limit_soon()
        try:
            yield self._held_ns
        finally:
            self._held_ns = None
            await self.limit(None, self.owner)

    async def limit_soon(self) -> Instant:
        """Let time stand still as soon as no node ends its step beyond; returns where. Raises as `limit`."""
        while True:
            # Not at the furthest node's present instant: a node in the middle of a step finishes it before it sees a
            # limit. The first limit may come too late for that on a fast fabric. The second does not.
            at_ns = (await self.clock()).next_ns
            if await self.limit(at_ns, self.owner) == at_ns:
                return at_ns

    # Waiting.

    async def patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask a question again as long as hosts cannot reach each other, and return its answer.

        Fabric time waits for silent daemons meanwhile, so this waits too. Raises what the question raises.
        """
        apart = False
        while True:
            try:
                return await ask()
            except NoAnswerError:
                was_apart, apart = apart, not (await self.clock()).whole
                if not (apart or was_apart):
                    raise

    async def reached(self, at_ns: Instant, within_s: float = WAIT_WALL_S) -> ClockReading:
        """Wait until fabric time has reached `at_ns`, or nothing is pending that could move it there.

        Raises NoAnswerError after `within_s` of wall time.
        """
        arguments.instant("at_ns", at_ns)
        try:
            async with asyncio.timeout(arguments.wall_s("within_s", within_s)):
                while True:
                    clock = await self.clock()
                    if clock.now_ns >= at_ns or (clock.idle and clock.state == "sleep"):
                        return clock
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise NoAnswerError(f"fabric time has not come to {at_ns} ns within {within_s:g} s") from None
