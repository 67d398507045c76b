"""The rows of docs/PAPER.md: each has a scenario of its own, and shows findings that the scenario has."""

import pytest

from orchestrator.runs.sweep import Point, plan_of
from orchestrator.scenario.resolve import load
from studies.paper import EXPERIMENTS, ROCE, Experiment
from tests.checks.source import ROOT

EVERY = (*EXPERIMENTS, *ROCE)
EXAMPLES = ROOT / "examples" / "paper"


def test_every_scenario_has_one_row() -> None:
    files = sorted(path.stem for path in EXAMPLES.glob("*.yaml") if path.stem != "fabric")
    assert sorted(experiment.scenario for experiment in EVERY) == files


@pytest.mark.parametrize("experiment", EVERY, ids=lambda experiment: experiment.scenario)
def test_a_row_shows_what_its_scenario_has_in_both_sizes(experiment: Experiment) -> None:
    file = str(EXAMPLES / f"{experiment.scenario}.yaml")
    plan = load(file)
    assert set(experiment.shown) <= {asked.name for asked in plan.expectations}
    assert plan_of(file, Point(experiment.larger, plan.seed)).topology != plan.topology


@pytest.mark.parametrize("experiment", ROCE, ids=lambda experiment: experiment.scenario)
def test_rows_about_roce_run_roce_and_have_mrc_beside_them(experiment: Experiment) -> None:
    file = str(EXAMPLES / f"{experiment.scenario}.yaml")
    plan = load(file)
    assert experiment.roce
    assert plan.topology.nic["transport"] == "rc"
    if experiment.mrc:
        assert "transport" not in plan_of(file, Point(experiment.mrc, plan.seed)).topology.nic
