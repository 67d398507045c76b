"""Records as JSON Schema: every kind of annotation that published records have."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from jsonschema import Draft202012Validator

from tools.schemas.records import document


@dataclass(frozen=True)
class _Inner:
    """One
    part."""

    name: str


@dataclass(frozen=True)
class _Whole:
    """All kinds."""

    parts: tuple[_Inner, ...]
    """What it is
    made of."""
    state: Literal["up", "down"]
    by_name: dict[str, float]
    some: int | None
    anything: dict[str, Any]

    @property
    def count(self) -> int:
        """How many parts."""
        return len(self.parts)


def test_types_come_from_annotations_and_meanings_from_texts() -> None:
    schema = json.loads(document(_Whole, "Title", "What it is.", ("count",)))
    assert (schema["title"], schema["description"]) == ("Title", "What it is.")
    assert schema["properties"] == {
        "parts": {"type": "array", "items": {"$ref": "#/$defs/_Inner"}, "description": "What it is made of."},
        "state": {"enum": ["up", "down"]},
        "by_name": {"type": "object", "additionalProperties": {"type": "number"}},
        "some": {"type": ["integer", "null"]},
        "anything": {"type": "object", "additionalProperties": {}},
        "count": {"type": "integer", "description": "How many parts."},
    }
    assert schema["$defs"]["_Inner"]["description"] == "One part."


def test_what_it_describes_is_valid_and_nothing_else() -> None:
    validator = Draft202012Validator(json.loads(document(_Whole, "Title", "What it is.")))
    record: dict[str, Any] = {
        "parts": [{"name": "x"}], "state": "up", "by_name": {"a": 1.5}, "some": None, "anything": {"x": [None]}
    }  # fmt: skip
    validator.validate(record)
    for wrong in ({"state": "sideways"}, {"parts": [{}]}, {"some": "1"}, {"more": 1}):
        assert not validator.is_valid({**record, **wrong})
