"""The published schema of snapshots is that of the records, and snapshots of all kinds are what it says."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from mrcfabric.topology import Topology
from orchestrator.live.snapshot import Snapshot
from tests.support import snapshots
from tools.schemas.snapshot import document

PUBLISHED = Path(__file__).parents[3] / "docs/schema/snapshot.json"


def test_the_published_schema_is_the_records() -> None:
    assert PUBLISHED.read_text() == document(), "python -m tools.schemas.snapshot > docs/schema/snapshot.json"


@pytest.mark.parametrize("make", [snapshots.quiet, snapshots.busy, snapshots.broken, snapshots.all_broken])
def test_snapshots_are_what_it_says(make: Callable[[Topology], Snapshot]) -> None:
    validator = Draft202012Validator(json.loads(document()))
    record = make(snapshots.SMALL).record()
    validator.validate(record)
    del record["planes"]
    assert not validator.is_valid(record)


def test_meanings_come_from_the_records() -> None:
    schema = json.loads(document())
    assert schema["$defs"]["NicView"]["properties"]["goodput_bps"]["description"] == "New payload placed in its memory."
    assert schema["$defs"]["LinkView"]["properties"]["state"]["enum"] == ["up", "impaired", "down"]
