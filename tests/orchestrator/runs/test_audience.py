"""Several listeners hear the same, in their order."""

from typing import Any

from mrcfabric.units import Instant
from orchestrator.findings.recording import Injected, Recording
from orchestrator.goodput import Goodput
from orchestrator.runs.audience import Audience, Audiences
from orchestrator.scenario.plan import Plan, Trigger
from tests.support.plans import FLAP, sample_plan


class Ears:
    """Writes down what it hears, in a list that it shares with others."""

    def __init__(self, name: str, heard: list[tuple[str, str]]) -> None:
        self.name = name
        self.heard = heard

    def began(self, plan: Plan, backend: str) -> None:
        self.heard.append((self.name, f"began {plan.name} on {backend}"))

    def looked(self, recording: Recording) -> None:
        self.heard.append((self.name, f"looked at {recording.name}"))

    def injected(self, injected: Injected) -> None:
        self.heard.append((self.name, f"injected {injected.fault.id}"))

    def triggered(self, trigger: Trigger, at_ns: Instant) -> None:
        self.heard.append((self.name, f"triggered {trigger.name} at {at_ns}"))

    def ended(self, report: dict[str, Any]) -> None:
        self.heard.append((self.name, f"ended {report['verdict']}"))

    def closed(self) -> None:
        self.heard.append((self.name, "closed"))


def test_everybody_hears_everything_in_order() -> None:
    heard: list[tuple[str, str]] = []
    plan = sample_plan()
    recording = Recording("sample", "sim", "paper", plan.topology, 100_000, 0, 0, Goodput(5_000, 2))
    everybody: Audience = Audiences([Ears("a", heard), Ears("b", heard)])
    everybody.began(plan, "sim")
    everybody.looked(recording)
    everybody.injected(Injected(FLAP))
    everybody.triggered(plan.triggers[0], 5)
    everybody.ended({"verdict": "pass"})
    everybody.closed()
    said = [
        "began sample on sim",
        "looked at sample",
        "injected flaps",
        "triggered kill at 5",
        "ended pass",
        "closed",
    ]
    assert heard == [(name, line) for line in said for name in ("a", "b")]
