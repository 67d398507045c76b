"""A listener to runs that shows nothing."""

from typing import Any

from mrcfabric.units import Instant
from orchestrator.measures.recording import Injected, Recording
from orchestrator.scenario.plan import Plan, Trigger


class Quiet:
    """See `orchestrator.runs.observer.RunObserver`."""

    def began(self, plan: Plan, backend: str) -> None: ...

    def looked(self, recording: Recording) -> None: ...

    def injected(self, injected: Injected) -> None: ...

    def triggered(self, trigger: Trigger, at_ns: Instant) -> None: ...

    def ended(self, report: dict[str, Any]) -> None: ...

    def closed(self) -> None: ...
