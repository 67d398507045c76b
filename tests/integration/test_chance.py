"""Scenarios as chance writes them: the same report on both backends, save what is said of the machine.

The seeds are some in which much meets: chaos, conditions that fire again, a NIC that dies at the begin and its program
with it, faults on nodes that are away, several workloads, a run that stalls, a T1 that returns while the T0 beside it
is away. Any other seed must do as well.
"""

import json
from pathlib import Path

import pytest

from orchestrator.measures.judge import verdict
from orchestrator.measures.recording import Recording
from orchestrator.report import report
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.resolve import load
from tests.support.chance import scenario
from tests.support.runs import conducted

pytestmark = [pytest.mark.integration, pytest.mark.slow]

OF_A_BACKEND = ("backend", "fidelity", "wall")


def reported(plan: Plan, recording: Recording) -> dict[str, object]:
    """The report without what is of the backend."""
    made = report.build(plan, recording, verdict(plan.expectations, recording))
    return {key: value for key, value in made.items() if key not in OF_A_BACKEND}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.long) for seed in (5, 10, 17, 38, 267))])
async def test_the_report_is_the_same_on_both_backends(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "chance.yaml"
    file.write_text(json.dumps(scenario(seed)))
    plan = load(str(file))
    expected = reported(plan, await conducted(plan, "sim", tmp_path))
    seen = reported(plan, await conducted(plan, "udp", tmp_path / "run"))
    assert expected["trace_digest"] != ""
    assert [key for key in expected if seen[key] != expected[key]] == [], seen["lost"]
