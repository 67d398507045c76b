"""The published schema is that of the types, and agrees with the decoder about the shape of files."""

import json
from typing import Any

import jsonschema
import pytest
import yaml

from tests.checks.source import ROOT
from tests.support.scenarios import SMALL, WHOLE, complaint, plan_of
from tools.schemas.scenario import schema, text

PUBLISHED = ROOT / "docs/schema/scenario.json"

CHECK = jsonschema.Draft202012Validator(schema())


def fits(text: str) -> bool:
    return bool(CHECK.is_valid(yaml.safe_load(text)))


def test_the_published_schema_is_fresh() -> None:
    assert PUBLISHED.read_text() == text(), "python -m tools.schemas.scenario > docs/schema/scenario.json"


@pytest.mark.slow
def test_it_is_a_schema_and_offers_no_null() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert '"null"' not in text()
    assert json.loads(text()) == schema()


@pytest.mark.parametrize("good", [SMALL, WHOLE, "name: nothing"])
def test_good_files_fit(good: str) -> None:
    plan_of(good)
    assert fits(good)


BAD: tuple[tuple[str, str], ...] = (
    ("name: whole", "title: whole"),
    ("name: whole", "name: wh ole"),
    ("planes: 4", "plains: 4"),
    ("length: 400rtt", "length: 400"),
    ("length: 400rtt", "length: 400 furlongs"),
    ("kind: training", "kind: trainin"),
    ("steps: 30", "steps: many"),
    ("steps: 30", "stepps: 30"),
    ("bucket_bytes: 1MiB", "bucket_bytes: 1MB"),
    ("fault: flap", "fault: flip"),
    ("period: 10rtt", "period: 10"),
    ("period: 10rtt, ", ""),
    ("duty: 0.5", "duty: 1.5"),
    ("duty: 0.5", "duty:"),
    ("toxicity: 1%", "toxicity: 7"),
    ("mode: fixed", "mode: fixd"),
    ("direction: both", "direction: left"),
    ("links:", "link:"),
    ("turns: next", "turns: newest"),
    ("to: {delay: 10us}", "to: {dely: 10us}"),
    ("at_least: 20}", "at_least: twenty}"),
    ("at_once_max: 2", "at_once_max: 0"),
    ("at_once_max: 2", "budget: 2"),
    ("weight: 2", "weight: 0"),
    ("most: 20rtt", "mst: 20rtt"),
    ("reduce: p99", "reduce: p98"),
    ("measure: qp_errors, ", ""),
)


@pytest.mark.parametrize(("right", "wrong"), BAD)
def test_bad_files_fit_neither(right: str, wrong: str) -> None:
    assert right in WHOLE
    bad = WHOLE.replace(right, wrong, 1)
    assert complaint([], bad)
    assert not fits(bad)


def test_every_part_is_used() -> None:
    parts: dict[str, Any] = schema()["$defs"]
    used = json.dumps(schema())
    assert [name for name in parts if f'"#/$defs/{name}"' not in used] == []
