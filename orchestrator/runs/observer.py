"""Who is told how a run goes: the one interface of the live screen, the lines without a terminal and the event stream.

Owns the order in which things are told. What is shown is `orchestrator.runs.screen`'s, `orchestrator.runs.lines`'s and
`orchestrator.runs.stream`'s; when something is told is the run's own.

    began; then looked, injected, mapped and triggered in the order of fabric time; then ended; closed last, however it
    ended

An observer only listens: nothing that it does changes the course of a run.
"""

from typing import Any, Protocol

from mrcfabric.units import Instant
from orchestrator.measures.recording import Injected, LinksFound, Recording
from orchestrator.scenario.plan import Plan, Trigger


class RunObserver(Protocol):
    """One listener. All methods return at once."""

    def began(self, plan: Plan, backend: str) -> None:
        """The fabric is there, and its time stands still. `backend` is `udp` or `sim`."""
        ...

    def looked(self, recording: Recording) -> None:
        """After every look; the newest is `recording.looks[-1]`, and goodput and faults are up to date."""
        ...

    def injected(self, injected: Injected) -> None:
        """A fault was handed to the fabric, ahead of its begin; not again when it is healed."""
        ...

    def triggered(self, trigger: Trigger, at_ns: Instant) -> None:
        """A condition was seen to hold at the look of `at_ns`; its faults are injected next."""
        ...

    def mapped(self, found: LinksFound) -> None:
        """The mapper of the run holds something else than before, from its look at `found.at_ns` on."""
        ...

    def ended(self, report: dict[str, Any]) -> None:
        """The run was judged; not called when there is nothing to judge, as after a launch that failed."""
        ...

    def closed(self) -> None:
        """Nothing more comes; called once, also after an error."""
        ...


class SilentObserver:
    """Listens to nothing, for runs whose recording is all that counts."""

    def began(self, plan: Plan, backend: str) -> None: ...

    def looked(self, recording: Recording) -> None: ...

    def injected(self, injected: Injected) -> None: ...

    def triggered(self, trigger: Trigger, at_ns: Instant) -> None: ...

    def mapped(self, found: LinksFound) -> None: ...

    def ended(self, report: dict[str, Any]) -> None: ...

    def closed(self) -> None: ...
