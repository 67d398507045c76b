"""The JSON Schema of a snapshot, made of the records themselves: types by their annotations, meanings by their texts.

Printed by `python -m orchestrator.lookout.schema`; docs/schema/snapshot.json is kept equal by a test.
"""

import ast
import inspect
import json
import textwrap
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from orchestrator.lookout.snapshot import Snapshot

TITLE: Final = "Snapshot of a running fabric, format 1"
DESCRIPTION: Final = (
    "What one look at a fabric shows. Instants and spans are fabric time in nanoseconds, rates are of fabric time, "
    "keys with nodes and links are their names."
)
_PLAIN: Final = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


def document() -> str:
    """The schema as text, with a newline at the end."""
    definitions: dict[str, Any] = {}
    top = _of_record(Snapshot, definitions)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": TITLE, "description": DESCRIPTION}
    return json.dumps({**schema, **top, "description": DESCRIPTION, "$defs": definitions}, indent=1) + "\n"


def _of_record(record: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints, texts = get_type_hints(record), _texts(record)
    properties = {}
    for field in fields(record):
        told = _of_type(hints[field.name], definitions)
        properties[field.name] = {**told, "description": texts[field.name]} if field.name in texts else told
    return {
        "type": "object",
        "description": " ".join((record.__doc__ or "").split()),
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _of_type(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if is_dataclass(hint):
        assert isinstance(hint, type)
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _of_record(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple:
        return {"type": "array", "items": _of_type(parts[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_type(parts[1], definitions)}
    if origin is UnionType:
        return {"type": [_PLAIN[part] for part in parts]}
    return {"type": _PLAIN[hint]}


def _texts(record: type) -> dict[str, str]:
    """What stands below each field in the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            assert isinstance(before.target, ast.Name)
            found[before.target.id] = " ".join(str(after.value.value).split())
    return found


if __name__ == "__main__":
    print(document(), end="")
