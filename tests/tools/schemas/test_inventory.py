"""The published schema is that of the types, and agrees with the reader about the shape of files."""

from typing import Any

import jsonschema
import pytest
import yaml

from orchestrator.hosts.placement.inventory_file import parsed
from tests.checks.source import ROOT
from tests.support.inventories import WHOLE, complaint
from tools.schemas.inventory import schema, text

PUBLISHED = ROOT / "docs/schema/inventory.json"

CHECK = jsonschema.Draft202012Validator(schema())


def fits(text: str) -> bool:
    return bool(CHECK.is_valid(yaml.safe_load(text)))


def test_the_published_schema_is_fresh() -> None:
    command = "python -m tools.schemas.inventory > docs/schema/inventory.json"
    assert PUBLISHED.read_text() == text(), command


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    parts: dict[str, Any] = schema()["$defs"]
    assert [name for name in parts if f'"#/$defs/{name}"' not in text()] == []


@pytest.mark.parametrize("good", [WHOLE, "hosts: {vm1: 10.0.0.1}"])
def test_good_files_fit(good: str) -> None:
    parsed("x", good)
    assert fits(good)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("hosts:", "host:"),
        ("cores: 8", "cores: 0"),
        ("cores: 8", "cors: 8"),
        ("memory_bytes: 16GiB", "memory_bytes: 16 furlongs"),
        ("vm1: 10.0.0.1", "vm1: 10"),
        ("mtu: 9000", "mtu: 1"),
        ("port: 2222", "port: 0"),
        ("nics: cores", "nics: core"),
        ("switches: spread", "switches: plane"),
        ("- {host: vm3}", "- {hosts: vm3}"),
        ('- {nodes: "p0-*", host: vm1}', "- {host: vm1}"),
        ("nodes_per_process: 4", "nodes_per_process: many"),
    ],
)
def test_bad_files_fit_neither(right: str, wrong: str) -> None:
    assert right in WHOLE
    bad = WHOLE.replace(right, wrong, 1)
    assert complaint(bad)
    assert not fits(bad)
