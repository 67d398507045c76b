"""The JSON Schema of records that are printed as JSON: types from the annotations, descriptions from the docstrings.

Owns the translation alone. The module of each schema says which record is published under which title; tests compare
the files below docs/schema with the result.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

_PLAIN: Final = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


def document(record: type, title: str, description: str, derived: Sequence[str] = ()) -> str:
    """The schema of a record as text, with a newline at the end. `derived`: properties that are printed with it."""
    definitions: dict[str, Any] = {}
    top = _of_record(record, definitions)
    for name in derived:
        of = getattr(record, name).fget
        told = _of_type(get_type_hints(of)["return"], definitions)
        top["properties"][name] = {**told, "description": _line(of.__doc__)}
        top["required"].append(name)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "description": description}
    return json.dumps({**schema, **top, "description": description, "$defs": definitions}, indent=1) + "\n"


def _of_record(record: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints, texts = get_type_hints(record), _texts(record)
    properties = {}
    for field in fields(record):
        told = _of_type(hints[field.name], definitions)
        properties[field.name] = {**told, "description": texts[field.name]} if field.name in texts else told
    return {
        "type": "object",
        "description": _line(record.__doc__),
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
    if hint is Any:
        return {}
    if origin is UnionType:
        if any(is_dataclass(part) for part in parts):
            return {"anyOf": [_of_type(part, definitions) for part in parts]}
        return {"type": [_PLAIN[part] for part in parts]}
    return {"type": _PLAIN[hint]}


def _texts(record: type) -> dict[str, str]:
    """The text below each field in the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            assert isinstance(before.target, ast.Name)
            found[before.target.id] = _line(str(after.value.value))
    return found


def _line(text: str | None) -> str:
    return " ".join((text or "").split())
