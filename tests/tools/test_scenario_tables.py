"""docs/SCENARIOS.md: its tables are those of the catalogues, its examples are good, its keys are those of the types."""

import re

import jsonschema
import msgspec
import pytest
import yaml

from orchestrator.faults.kinds import KINDS
from orchestrator.measures.measures import MEASURES
from orchestrator.scenario import model
from orchestrator.scenario.model import KINDS_OF_WORK
from orchestrator.scenario.resolve import load
from tests.checks.source import ROOT
from tests.support.scenarios import plan_of
from tools.scenario_tables import TABLES, filled
from tools.schemas.scenario import schema

PAGE = ROOT / "docs/SCENARIOS.md"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
SCENARIOS = [
    path
    for path in sorted((ROOT / "examples").rglob("*.yaml"))
    if re.search(r"^(workload|method):", path.read_text(), re.MULTILINE)
]


def test_the_tables_are_fresh() -> None:
    text = PAGE.read_text()
    assert filled(text) == text, "python -m tools.scenario_tables docs/SCENARIOS.md"
    assert all(f"<!-- table: {name} -->" in text for name in TABLES)


def test_every_kind_and_measure_has_its_row() -> None:
    for name, rows in (("workloads", KINDS_OF_WORK), ("faults", KINDS), ("measures", MEASURES)):
        lines = TABLES[name]().splitlines()
        assert [line.split("`")[1] for line in lines[2:]] == list(rows)
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_the_rows_say_keys_as_they_are_written() -> None:
    row = next(line for line in TABLES["faults"]().splitlines() if line.startswith("| `loss`"))
    assert "`toxicity` (1%): " in row
    row = next(line for line in TABLES["faults"]().splitlines() if line.startswith("| `rate_limit`"))
    assert "`rate` (needed): " in row


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_of_the_page_is_good(number: int) -> None:
    plan_of(EXAMPLES[number])


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_shipped_scenario_is_good(path: object) -> None:
    load(str(path))


def test_the_schema_takes_whatever_is_shown_or_shipped() -> None:
    check = jsonschema.Draft202012Validator(schema())
    for text in [*EXAMPLES, *(path.read_text() for path in SCENARIOS)]:
        assert not list(check.iter_errors(yaml.safe_load(text)))


def test_every_key_is_told() -> None:
    text = PAGE.read_text()
    shapes = (model.ScenarioFile, model.Expect, model.Entry, model.Selector, model.Condition, model.Chaos)
    for shape in shapes:
        for row in msgspec.structs.fields(shape):
            assert f"`{row.encode_name}`" in text, f"{shape.__name__}.{row.encode_name}"
    assert (model.LENGTH, model.SETTLE, model.LOOK, model.NOMINAL_DILATION) == ("2000rtt", "20rtt", "5rtt", 10_000)
