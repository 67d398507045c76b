"""Raw settings of a topology (`nic`, `switch`) turned into the settings class of a core.

Owns the check of names and kinds, with the nearest known name; what the values may be is each class's own business.
"""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown

T = TypeVar("T")


def settings_from(kind: type[T], raw: Mapping[str, Any], where: str, derived: Mapping[str, Any] | None = None) -> T:
    """An instance of the dataclass `kind`: its defaults, over them `derived`, over those `raw`.

    A whole number will do where the default is a fraction. Raises ConfigError with `where.key` for a key that
    `kind` does not have, a value of another kind than its default, and whatever `kind` itself refuses.
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
