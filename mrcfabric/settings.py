"""Raw settings of a topology (`nic`, `switch`) turned into the settings class of a core.

Checks names and kinds, and suggests the nearest known name. Each settings class checks its own values.
"""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown

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
            close = difflib.get_close_matches(key, fields, n=1, cutoff=0.5)
            hint = f"nearest is {close[0]}" if close else "there are " + ", ".join(fields)
            raise ConfigError(f"{where}.{shown(key)}", "no such setting", hint)
        default = fields[key].default
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(default):
            raise ConfigError(f"{where}.{key}", f"{value!r} will not do", f"as in {key}={default!r}")
        values[key] = value
    return kind(**values)
