"""Prints podmonitor.schema.json, made from types that were made from the operator's own definition; see README.md."""

import json
from typing import Any

from cloudcoil.models.prometheus_operator.v1 import PodMonitor

LEFT_OUT = {"default", "title", "description"}


def strict(part: Any) -> Any:
    """The same without words, null where nothing is the same as leaving it out, and with no key that nobody knows."""
    if isinstance(part, list):
        return [strict(one) for one in part]
    if not isinstance(part, dict):
        return part
    found = {key: strict(value) for key, value in part.items() if key not in LEFT_OUT or isinstance(value, dict)}
    kinds = [one for one in found.get("anyOf", []) if one != {"type": "null"}]
    if len(kinds) == 1 and len(found["anyOf"]) == 2:
        del found["anyOf"]
        found |= kinds[0]
    if "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


schema = strict(PodMonitor.model_json_schema(by_alias=True))
schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
print(json.dumps(schema, indent=1, sort_keys=True))
