"""A fabric as everything above it sees it, launched here or running elsewhere: find parts, break them, wait, read.

Declares what the two kinds of fabric do each in their way (`orchestrator.fabric.launched`,
`orchestrator.client.agent_fabric`), and builds on it the verbs that both share. Work and watches, for which a whole run
is needed, join them in `orchestrator.api.scripting`.
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
from orchestrator.fabric.finder import Finder, Names, Narrowing
from orchestrator.fabric.readings import ClockReading, Death, Untold
from orchestrator.faults.fault import Fault, Figure, Window

if TYPE_CHECKING:
    from orchestrator.fabric.polling import Glances

T = TypeVar("T")

WAIT_WALL_S: Final = 60.0
POLL_S: Final = 0.01
SOON_LEADS: Final = (1, 2, 4, 8, 16, 32)
"""How far ahead a fault begins that is to begin soon, in leads of a command sent now, try by try: on a busy machine the
fabric may be there before the word is."""


class Verbs(Finder, ABC):
    """A fabric as scripts see it."""

    def __init__(self, topology: Topology, owner: str = "") -> None:
        """`owner`: to whom the faults belong that are injected by `add_fault`."""
        self.topology = topology
        self.owner = owner
        self._ids = itertools.count(1)
        self._held_ns: Instant | None = None
        """Where this object holds fabric time."""

    # What a fabric can do by itself.

    @abstractmethod
    async def call(
        self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        """The answer of a node's daemon to an op of its control channel; None: as long as there is hope for one."""

    @abstractmethod
    async def counters(self, nodes: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
        """What these nodes count (None: all), those that are down left out: plain numbers in tables."""

    @abstractmethod
    async def glances(self, nodes: Sequence[str] | None = None) -> "Glances":
        """What these daemons (None: all) say at a glance; asked as often as one likes (`orchestrator.live`)."""

    @abstractmethod
    async def metrics(self, node: str) -> str:
        """What a node counts, as Prometheus text (docs/METRICS.md)."""

    @abstractmethod
    async def fidelity(self) -> dict[str, Any]:
        """How faithful the emulation has been since the launch, in all lives (`measures.sums.fidelity`)."""

    @abstractmethod
    async def host_pairs(self) -> list[dict[str, Any]]:
        """What is known of every two hosts (`orchestrator.hosts.clock.host_pairs`); nothing where there is but one."""

    @abstractmethod
    async def clock(self) -> ClockReading:
        """What time it is, how far it may go, and whether anything is pending."""

    @abstractmethod
    async def limit(self, at_ns: Instant | None, owner: str = "") -> Instant | None:
        """Let everything up to and including `at_ns` happen and then stand still; None: let time go on for good.

        `owner` has time in hand as long as there is a limit; "" is whoever this object speaks for.
        """

    @abstractmethod
    async def load(self, program: Program, at_ns: Instant | None = None) -> None:
        """Give every NIC of a program its part."""

    @abstractmethod
    async def inject(self, fault: Fault) -> Fault:
        """Have a fault happen; all its windows lie in the future. Returns it as it was taken, when the daemons have
        been told.

        Raises ConfigError for a fault that this fabric cannot have, RefusedError for one that comes too late.
        """

    @abstractmethod
    async def heal(self, fault_id: str, at_ns: Instant | None = None) -> Fault | None:
        """End a fault at an instant, by default as soon as possible; returns what is left of it."""

    @abstractmethod
    async def live_faults(self) -> list[Fault]:
        """Every fault that is not over, whoever injected it."""

    @abstractmethod
    async def deaths(self) -> list[Death]:
        """Daemons that ended though nobody had asked for it."""

    @abstractmethod
    async def totals(self) -> dict[str, int]:
        """What all nodes have counted since the launch, in all their lives (`orchestrator.measures.sums.totals`)."""

    @abstractmethod
    async def untold(self) -> list[Untold]:
        """Lives that ended before they had told everything, and between which instants the totals lack what they
        counted: one that somebody killed from outside, or whose host was lost."""

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
        """Break what is meant by names, globs and the narrowing words of `find_links`; returns the fault.

        `kind` and `figures` are those of docs/FAULTS.md; `at_ns` None: as soon as possible; `for_ns` None: until it is
        healed. Raises ConfigError, RefusedError.
        """
        targets = tuple(self.targets(kind, *names, **narrowed))
        number = f"{self.owner or 'script'}-{next(self._ids)}"

        def beginning(start_ns: Instant) -> Fault:
            window = Window(start_ns, NEVER if for_ns is None else start_ns + for_ns, dict(figures or {}))
            return Fault(number, kind, targets, (window,), self.owner, title)

        if at_ns is None and self._held_ns is not None:
            at_ns = self._held_ns + 1
        if at_ns is None:
            return await self.inject_soon(beginning)
        return await self.inject(beginning(at_ns))

    async def inject_soon(self, beginning: Callable[[Instant], Fault]) -> Fault:
        """Have a fault happen as soon as possible; returns it as it was taken.

        `beginning`: the fault, given its first instant, which is further ahead each time that the fabric was faster
        than our word to it. Raises as `inject`.
        """
        for lead in SOON_LEADS:
            clock = await self.clock()
            fault = beginning(clock.soon_ns + (lead - 1) * (clock.soon_ns - clock.front_ns))
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
        """The same for the length of a block: broken when it begins, healed when it ends."""
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
        """End every fault that this object injected; returns their ids."""
        mine = [fault.id for fault in await self.live_faults() if fault.owner == self.owner]
        for one in mine:
            await self._heal(one)
        return mine

    async def _heal(self, fault_id: str) -> Fault | None:
        """End one fault; None when it was over by then."""
        try:
            return await self.heal(fault_id, None if self._held_ns is None else self._held_ns + 1)
        except RefusedError:
            if any(one.id == fault_id for one in await self.live_faults()):
                raise
            return None

    # Time.

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Instant]:
        """Fabric time comes to a stand in the block, at the instant that it is given: what is broken or healed in it
        takes effect right there. Raises RefusedError when time is in somebody else's hands.
        """
        # Not where the furthest node is: one in the middle of a step ends it without having heard of the limit.
        self._held_ns = await self.limit((await self.clock()).soon_ns, self.owner)
        assert self._held_ns is not None
        try:
            yield self._held_ns
        finally:
            self._held_ns = None
            await self.limit(None, self.owner)

    # Waiting.

    async def patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer to a question, asked again as long as hosts do not hear each other: time waits for whoever is
        silent meanwhile, and so do we. Raises what the question raises."""
        apart = False
        while True:
            try:
                return await ask()
            except NoAnswerError:
                was_apart, apart = apart, not (await self.clock()).whole
                if not (apart or was_apart):
                    raise

    async def reached(self, at_ns: Instant, within_s: float = WAIT_WALL_S) -> ClockReading:
        """Wait until fabric time is there, or nothing is pending that could bring it there.

        Raises NoAnswerError after `within_s` of wall time.
        """
        try:
            async with asyncio.timeout(within_s):
                while True:
                    clock = await self.clock()
                    if clock.now_ns >= at_ns or (clock.idle and clock.state == "sleep"):
                        return clock
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise NoAnswerError(f"fabric time has not come to {at_ns} ns within {within_s:g} s") from None
