"""The JSON Schema of scenario files, made from the types that decode them.

Owns how the types of entries are put together, and the part for `fabric`, which the topology file's reader decodes. The
decoder refuses every file that the schema refuses. It also checks more: names, instants, entries that do not fit
together. `python -m tools.schemas.scenario` prints the schema; a test compares docs/schema/scenario.json with it.
"""

import dataclasses
import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from mrcfabric import latency
from mrcfabric.topology import Topology
from mrcfabric.topology_check import TABLES
from mrcfabric.topology_file import FILE_KEY, LATENCY_KEY
from orchestrator.scenario.model import DRAWN, ENTRIES, WORKLOADS, ChaosEntry, ScenarioFile
from orchestrator.yamlfile.document import FABRIC_KEY

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/{name}"


def schema() -> dict[str, Any]:
    """The whole schema, plain data in a stable order."""
    kinds: list[Any] = [ScenarioFile, ChaosEntry, *ENTRIES.values(), *DRAWN.values(), *WORKLOADS.values()]
    _, parts = msgspec.json.schema_components(kinds, ref_template=_REF)
    found: dict[str, Any] = {name: _without_null(part) for name, part in parts.items()}
    root: dict[str, Any] = found.pop(ScenarioFile.__name__)
    root["properties"] = {FABRIC_KEY: _fabric(), **root["properties"]}
    root["properties"]["workload"]["items"] = _any_of(WORKLOADS.values())
    root["properties"]["method"]["items"] = _any_of([*ENTRIES.values(), ChaosEntry])
    found["Chaos"]["properties"]["faults"]["items"] = _any_of(DRAWN.values())
    title = "A scenario of mrcfabric"
    return {"$schema": DIALECT, **root, "title": title, "$defs": dict(sorted(found.items()))}


def text() -> str:
    """The schema as text, as it is published."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _any_of(kinds: Iterable[type[Struct]]) -> dict[str, Any]:
    return {"anyOf": [{"$ref": _REF.format(name=kind.__name__)} for kind in kinds]}


def _without_null(part: Any) -> Any:
    """The part without null.

    A key must not have null in place of being left out: the reader refuses null before it decodes.
    """
    if isinstance(part, list):
        return [_without_null(one) for one in part if one != {"type": "null"}]
    if not isinstance(part, dict):
        return part
    found = {key: _without_null(value) for key, value in part.items() if not (key == "default" and value is None)}
    choices = found.get("anyOf")
    if isinstance(choices, list) and len(choices) == 1:
        del found["anyOf"]
        found = {**choices[0], **found}
    return found


def _fabric() -> dict[str, Any]:
    """The keys of a topology file with their kinds; the topology itself checks the values."""
    scalar = {"type": ["integer", "number", "string", "boolean"]}
    table = {"type": "object", "additionalProperties": scalar}
    keys: dict[str, Any] = {
        field.name: table if field.name in TABLES else scalar for field in dataclasses.fields(Topology)
    }
    keys[LATENCY_KEY] = {"anyOf": [table, {"const": latency.WORD}]}
    own = {"type": "string", "description": "A topology file, from which the other keys differ."}
    return {
        "description": "As a topology file has it; the defaults of a topology without it.",
        "type": "object",
        "properties": {FILE_KEY: own, **keys},
        "additionalProperties": False,
    }


if __name__ == "__main__":
    print(text(), end="")
