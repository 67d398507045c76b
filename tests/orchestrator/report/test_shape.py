"""The published schema of a report agrees with the reports that are written."""

import json
from typing import Any

import jsonschema
import pytest

from orchestrator.report import shape
from tests.checks.source import ROOT
from tests.support.recordings import HOST_PAIR, OWN_PAIR, sample_run_report

VALIDATOR = jsonschema.Draft202012Validator(shape.schema())


def plain(report: dict[str, Any]) -> Any:
    return json.loads(json.dumps(report))


def test_the_document_is_fresh() -> None:
    published = (ROOT / "docs/schema/report.json").read_text()
    assert published == shape.document(), "python -m orchestrator.report.shape > docs/schema/report.json"


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(shape.schema())


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"backend": "udp", "wall": {"run_s": 1.5}},
        {"looks": [], "programs": [], "faults": [], "events": [], "fidelity": {}, "reorder": {}},
        {"host_pairs": [OWN_PAIR, HOST_PAIR]},
        {"ended": "lost", "lost": "h000 died"},
    ],
)
def test_reports_are_as_the_schema_says(changed: dict[str, Any]) -> None:
    VALIDATOR.validate(plain(sample_run_report(**changed)))


@pytest.mark.parametrize(
    ("key", "value"), [("verdict", "good"), ("backend", "paper"), ("faults", {}), ("seed", 7), ("more", 1)]
)
def test_what_is_not_as_the_schema_says_is_found(key: str, value: Any) -> None:
    report = plain(sample_run_report()) | {key: value}
    assert not VALIDATOR.is_valid(report)


def test_no_key_is_left_out() -> None:
    report = plain(sample_run_report())
    assert set(shape.schema()["properties"]) == set(report)
    assert set(shape.schema()["required"]) == set(report) - {"system", "cores", "links"}, "older reports lack them"
    assert not VALIDATOR.is_valid({key: value for key, value in report.items() if key != "verdict"})
