"""The published schema of journeys is that of the records, and journeys of all kinds are what it says."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from orchestrator.faults.fault import Fault, once
from tests.support.tracing import journeys
from tools.schemas.journeys import document

PUBLISHED = Path(__file__).parents[3] / "docs/schema/journeys.json"


def test_the_published_schema_is_the_records() -> None:
    assert PUBLISHED.read_text() == document(), "python -m tools.schemas.journeys > docs/schema/journeys.json"


@pytest.mark.parametrize(
    "fault",
    [
        once("loss", "p0-t0-0~p0-t1-0", at_ns=1_100, until_ns=900_000, share_ppm=300_000),
        once("switch_crash", "p0-t1-0", at_ns=3_000, until_ns=300_000),
        once("duplication", "h000>p0-t0-0", at_ns=1_100, until_ns=900_000, share_ppm=1_000_000),
    ],
    ids=lambda fault: fault.kind,
)
def test_journeys_are_what_it_says(fault: Fault) -> None:
    validator = Draft202012Validator(json.loads(document()))
    for journey in journeys(fault, until=60_000):
        validator.validate(json.loads(json.dumps(journey.record())))
    record = journeys(until=60_000)[0].record()
    record["attempts"][0]["way"]["outcome"] = "somewhere"
    assert not validator.is_valid(json.loads(json.dumps(record)))


def test_meanings_come_from_the_records() -> None:
    schema = json.loads(document())
    assert schema["properties"]["total_ns"] == {
        "type": ["integer", "null"], "description": "From the first sending to the acknowledgement."
    }  # fmt: skip
    assert "untold" in schema["$defs"]["Way"]["properties"]["outcome"]["enum"]
