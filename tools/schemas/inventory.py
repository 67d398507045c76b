"""The JSON Schema of inventories, made from the types that decode them.

Owns how the table of hosts is put together. The reader refuses every file that the schema refuses. It also checks more:
addresses, names, duplicates. `python -m tools.schemas.inventory` prints the schema; a test compares
docs/schema/inventory.json with it.
"""

import json
from typing import Any, Final

import msgspec

from orchestrator.hosts.placement.inventory_file import HostTable, InventoryTable
from tools.schemas.scenario import DIALECT

_REF: Final = "#/$defs/{name}"


def schema() -> dict[str, Any]:
    """The whole schema, plain data in a stable order."""
    _, parts = msgspec.json.schema_components([InventoryTable, HostTable], ref_template=_REF)
    found: dict[str, Any] = dict(parts)
    root: dict[str, Any] = found.pop(InventoryTable.__name__)
    host = {"anyOf": [{"type": "string"}, {"$ref": _REF.format(name=HostTable.__name__)}]}
    root["properties"]["hosts"]["additionalProperties"] = host
    title = "An inventory of mrcfabric"
    return {"$schema": DIALECT, **root, "title": title, "$defs": dict(sorted(found.items()))}


def text() -> str:
    """The schema as text, as it is published."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(text(), end="")
