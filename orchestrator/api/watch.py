"""Records a fabric that goes on: looks at it repeatedly, and answers questions about measures meanwhile.

Owns the looks at a fabric whose time nobody controls. `orchestrator.runs.recorder` keeps what a look shows, and
`orchestrator.measures.measures` measures it. `orchestrator.runs.loop` does the same for runs, whose time stands still
between looks.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER, NS_PER_S, Instant
from orchestrator.api.work import Work
from orchestrator.fabric import arguments
from orchestrator.fabric.readings import ClockReading
from orchestrator.fabric.verbs import Verbs
from orchestrator.faults.fault import Fault
from orchestrator.measures import checking, judge
from orchestrator.measures.expectation import Expectation
from orchestrator.measures.judge import Finding
from orchestrator.measures.measure import Reduce, Relative
from orchestrator.measures.recording import Injected, Look, Recording
from orchestrator.runs.backend import BackendLostError
from orchestrator.runs.recorder import Recorder
from orchestrator.runs.udp_backend import UdpBackend
from orchestrator.scenario.plan import Plan

LOOKS_MAX: Final = 4096
"""How many looks are kept; when there are more, every second one is dropped."""
POLL_S: Final = 0.05
WAIT_WALL_S: Final = 60.0


class Bounds(TypedDict, total=False):
    """The fields of a condition beside its measure (`orchestrator.measures.expectation.Expectation`)."""

    of: str | Sequence[str]
    at_least: float
    at_most: float
    relative_to: Relative
    reduce: Reduce
    over_ns: int
    """How much of the end of the recording to measure, in ns; default: everything since the watch began."""


class _LiveBackend(UdpBackend):
    """A backend whose time goes on by itself, and in which others may inject faults, too."""

    def __init__(self, fabric: Verbs, now_ns: Instant) -> None:
        super().__init__(fabric, now_ns)
        self.live: Sequence[Fault] = ()

    def faults(self) -> Sequence[Fault]:
        return self.live


class Watch:
    """Records a fabric from now on, including work that is started later. Make it with `Verbs.watch`."""

    def __init__(self, fabric: Verbs, clock: ClockReading, works: Sequence[Work]) -> None:
        """`works`: the fabric's list of work, to which later work is added."""
        self._fabric = fabric
        self._works = works
        self._backend = _LiveBackend(fabric, clock.now_ns)
        plan = Plan(
            name="watch", description="", topology=fabric.topology, seed=fabric.topology.seed,
            second_ns=NS_PER_S, begin_ns=clock.now_ns, length_ns=NEVER, settle_ns=0, look_ns=0,
            programs=(), faults=(), triggers=(), expectations=(),
        )  # fmt: skip
        self._recorder = Recorder(plan, self._backend, details=True)
        self._going: dict[str, Injected] = {}
        """Id -> a fault that has not ended."""
        self._known_works = 0

    @property
    def recording(self) -> Recording:
        """Everything since the watch began."""
        return self._recorder.recording

    async def begin(self) -> None:
        """Read the counters from which later looks count. Raises NoAnswerError when a node does not answer."""
        with _silence():
            await self._refresh()
            await self._recorder.begin()

    async def look(self) -> Look:
        """Record the present state of the fabric. Raises NoAnswerError when a node does not answer, or has died."""
        with _silence():
            await self._refresh()
            look = await self._recorder.look()
        looks = self.recording.looks
        if len(looks) > LOOKS_MAX:
            del looks[1:-1:2]
        return look

    async def _refresh(self) -> None:
        self._backend.live = await self._fabric.live_faults()
        clock = await self._fabric.clock()
        self._backend.now_ns = clock.now_ns
        for work in self._works[self._known_works :]:
            self._recorder.add_program(work.program)
            self._known_works += 1
        self._enter_faults({fault.id: fault for fault in self._backend.live}, clock.front_ns)

    def _enter_faults(self, live: Mapping[str, Fault], front_ns: Instant) -> None:
        """Enter new and ended faults; `live`: those that had not ended when the fabric came to `front_ns`."""
        for one in list(self._going.values()):
            left = live.get(one.fault.id)
            if left is not None and left.start_ns != one.fault.start_ns:
                left = None  # another fault with the same id
            end_ns = front_ns if left is None else left.end_ns
            if end_ns < one.fault.end_ns:
                one.healed_ns = end_ns
            if left is None:
                del self._going[one.fault.id]
        for fault in live.values():
            if fault.id not in self._going:
                self._going[fault.id] = Injected(fault)
                self._recorder.injected(self._going[fault.id])

    def finding(self, measure: str, **bounds: Unpack[Bounds]) -> Finding:
        """Measure the recording so far and check the bounds. Raises ConfigError."""
        asked = _expectation(measure, bounds)
        programs = [program.name for program in self.recording.programs]
        checking.check(
            asked, measure, self.recording.topology, programs, [one.fault.id for one in self.recording.faults]
        )
        return judge.judge(asked, self.recording, last_ns=bounds.get("over_ns"))

    def figure(self, measure: str, **bounds: Unpack[Bounds]) -> float | None:
        """Measure the recording so far; of several figures the least, None without any. Raises ConfigError."""
        bounds["at_least"] = 0.0  # of figures from 0 on the least is the nearest to it
        bounds.pop("at_most", None)
        return self.finding(measure, **bounds).observed

    async def until(self, measure: str, *, within_s: float = WAIT_WALL_S, **bounds: Unpack[Bounds]) -> Finding:
        """Look until the bounds hold.

        Raises NoAnswerError after `within_s` of wall time; it tells what was observed.
        """
        found: Finding | None = None
        try:
            async with asyncio.timeout(arguments.wall_s("within_s", within_s)):
                while True:
                    await self.look()
                    found = self.finding(measure, **bounds)
                    if found.held:
                        return found
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            told = "nothing was seen" if found is None else judge.text(found)
            raise NoAnswerError(f"not within {within_s:g} s: {told}") from None


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """A run is over when a daemon is lost; a script goes on, with an error that it knows."""
    try:
        yield
    except BackendLostError as error:
        raise NoAnswerError(str(error)) from None


def _expectation(measure: str, bounds: Bounds) -> Expectation:
    of = () if bounds.get("of") is None else arguments.texts("of", bounds["of"])
    if bounds.get("over_ns") is not None:
        arguments.instant("over_ns", bounds["over_ns"], least=1)
    words: dict[str, Any] = {key: value for key, value in bounds.items() if key not in ("of", "over_ns")}
    name = arguments.text("measure", measure)
    try:
        return Expectation(name, name, tuple(of), **words)
    except TypeError:
        strange = ", ".join(sorted(words.keys() - Bounds.__annotations__.keys()))
        raise ConfigError(strange, f"is no word of a condition on {name}", ", ".join(Bounds.__annotations__)) from None
