"""Folds a JSON Schema whose types are spelled out wherever they are used: each becomes a definition, once.

`python fold_schema.py < SCHEMA > board.schema.json`; the README beside it says where the schema comes from.
"""

import json
import re
import sys
from collections import Counter
from typing import Any

CHARS_MIN = 80
"""Shorter types stay where they are."""


def folded(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, every type that occurs twice a definition."""
    seen: Counter[str] = Counter()
    _count(schema, seen)
    often = sorted((text for text, number in seen.items() if number > 1), key=lambda text: (len(text), text))
    names = {text: f"t{place}" for place, text in enumerate(often)}
    whole = {key: _replaced(value, names) for key, value in schema.items()}
    whole["definitions"] = {**whole.get("definitions", {})} | {
        name: {key: _replaced(value, names) for key, value in json.loads(text).items()} for text, name in names.items()
    }
    return whole


def _text(node: Any) -> str:
    return json.dumps(node, sort_keys=True, separators=(",", ":"))


def _is_type(node: dict[str, Any]) -> bool:
    """Not a table of properties, one of which is called `type`."""
    return isinstance(node.get("type", node.get("anyOf")), str | list)


def _count(node: Any, seen: Counter[str]) -> None:
    if isinstance(node, dict):
        if _is_type(node) and len(_text(node)) >= CHARS_MIN:
            seen[_text(node)] += 1
    elif not isinstance(node, list):
        return
    for inner in node.values() if isinstance(node, dict) else node:
        _count(inner, seen)


def _replaced(node: Any, names: dict[str, str]) -> Any:
    if isinstance(node, dict):
        name = names.get(_text(node))
        if name is not None:
            return {"$ref": f"#/definitions/{name}"}
        return {key: _replaced(value, names) for key, value in node.items()}
    return [_replaced(inner, names) for inner in node] if isinstance(node, list) else node


if __name__ == "__main__":
    # The generator names a type that has no name after its place in the source.
    source = re.sub(r"alias-boards\.ts-[0-9a-z.-]+", "panel", sys.stdin.read())
    print(_text(folded(json.loads(source))))
