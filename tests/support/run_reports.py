"""The report of the sample recording, as a run makes it: one expectation missed, two held."""

from dataclasses import replace
from typing import Any

from orchestrator.measures.expectation import Expectation, Span
from orchestrator.measures.judge import verdict
from orchestrator.measures.recording import Recording
from orchestrator.report.report import build
from tests.support.plans import sample_plan
from tests.support.recordings import BEGIN, sample_recording

EXPECTED = (
    Expectation(
        "goodput <holds>", "goodput", during=Span("fault", "flaps"), bin_ns=20_000, at_least=0.85, relative_to="line"
    ),
    Expectation("eight steps", "steps", of=("train",), at_least=8),
)
"""To these the judge adds that every byte is right."""


def report_of(recording: Recording, **changed: Any) -> dict[str, Any]:
    """The report of a recording; `changed` replaces fields of the plan."""
    plan = replace(sample_plan(), topology=recording.topology, begin_ns=BEGIN, expectations=EXPECTED, **changed)
    return build(plan, recording, verdict(plan.expectations, recording))


def sample_run_report() -> dict[str, Any]:
    """That of the sample."""
    return report_of(sample_recording())
