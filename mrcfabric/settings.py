"""Raw settings of a topology (`nic`, `switch`) turned into the settings class of a core.

Checks names and kinds, and suggests the nearest known name. Each settings class checks its own values.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from mrcfabric.errors import ConfigError, misfit
from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint
from mrcfabric.quantity import WRITTEN

T = TypeVar("T")


def settings_from(kind: type[T], raw: Mapping[str, Any], where: str, derived: Mapping[str, Any] | None = None) -> T:
    """An instance of the dataclass `kind`: its defaults, overridden by `derived`, overridden by `raw`.

    A whole number will do where the default is a fraction. Raises ConfigError with `where.key` for an unknown key, for
    a value of another kind than the default, and for a value that `kind` itself refuses.
    """
    fields = {item.name: item for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values = dict(derived or {})
    for key, value in raw.items():
        if key not in fields:
            raise ConfigError(f"{where}.{shown(key)}", "no such setting", nearest_hint(key, fields))
        default = fields[key].default
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(default):
            raise misfit(f"{where}.{key}", value, _wanted(key, default))
        values[key] = value
    return kind(**values)


def _wanted(key: str, default: object) -> str:
    """What the value of this setting is, in the words of an operator."""
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, str):
        return f"a text, as {default!r}" if default else "a text"
    if not isinstance(default, int | float):
        return f"as in {key}={default!r}"
    number = "a whole number" if isinstance(default, int) else "a number"
    return number + WRITTEN.get(key.rpartition("_")[2], "")
