"""Turns names and untrusted arguments into a core's command objects.

Checks names, kinds and sizes against the fields of the command classes. The core itself decides whether its state
allows the command. A client asks for `SetImpairment(token, port, impairment)` as
`set_impairment {port: 3, impairment: {up: false}}`.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, get_type_hints

from mrcfabric.errors import RefusedError
from mrcfabric.impairment import Impairment
from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint

WHOLE_MAX = (1 << 64) - 1
TEXT_CHARS_MAX = 256
LIST_ITEMS_MAX = 4096
LIST_TEXT_CHARS_MAX = 1024
TABLE_VALUES_MAX = 16_384
TABLE_DEPTH_MAX = 4
_TEXT_LISTS = (list[str], list[str] | None)
_FLAGS = (bool, bool | None)
# The daemon fills these in, or no message can carry their kind.
_NOT_ASKED_FOR = ("token", "memory")


class CommandTable:
    """The commands of one kind of core, by name."""

    def __init__(self, kinds: Iterable[type[Any]]) -> None:
        self._kinds: dict[str, tuple[type[Any], dict[str, tuple[Any, bool]]]] = {}
        for kind in kinds:
            hints = get_type_hints(kind)
            fields = {
                item.name: (hints[item.name], item.default is dataclasses.MISSING)
                for item in dataclasses.fields(kind)
                if item.name not in _NOT_ASKED_FOR
            }
            self._kinds[op_name(kind)] = (kind, fields)

    @property
    def names(self) -> list[str]:
        """The ops that a client may ask for."""
        return sorted(self._kinds)

    def arguments(self, op: str) -> dict[str, tuple[Any, bool]]:
        """A command's arguments by name: (type, whether it must be given). KeyError for an op not in `names`."""
        return dict(self._kinds[op][1])

    def build(self, op: str, args: Mapping[str, Any], token: int) -> Any:
        """The command object. Raises RefusedError that names the argument and its expected type."""
        if op not in self._kinds:
            raise RefusedError(f"no command is called {shown(op)} ({nearest_hint(op, self.names)})")
        kind, fields = self._kinds[op]
        values: dict[str, Any] = {}
        for name, value in args.items():
            if name not in fields:
                raise RefusedError(f"{op} has no argument {shown(str(name))} ({nearest_hint(str(name), list(fields))})")
            values[name] = _checked(f"{op}.{name}", value, fields[name][0])
        missing = [name for name, (_, required) in fields.items() if required and name not in values]
        if missing:
            raise RefusedError(f"{op} needs {', '.join(missing)}")
        return kind(token=token, **values)


def op_name(kind: type[Any]) -> str:
    """`SetImpairment` -> `set_impairment`."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).lower()


def _checked(where: str, value: Any, kind: Any) -> Any:
    if kind is Impairment:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise RefusedError(f"{where}: {value!r} is no table of faults")
        return Impairment.from_settings(dict(value))
    if kind == dict[str, Any]:
        return _checked_table(where, value)
    if kind in _TEXT_LISTS:
        return None if value is None and kind != _TEXT_LISTS[0] else _checked_list(where, value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind not in _FLAGS):
        wanted = getattr(kind, "__name__", str(kind))
        raise RefusedError(f"{where}: {value!r} will not do (wanted: {wanted})")
    if isinstance(value, int) and not 0 <= value <= WHOLE_MAX:
        raise RefusedError(f"{where}: {value} is out of range (0 to {WHOLE_MAX})")
    if isinstance(value, str) and len(value) > TEXT_CHARS_MAX:
        raise RefusedError(f"{where}: longer than {TEXT_CHARS_MAX} characters")
    return value


def _checked_list(where: str, value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise RefusedError(f"{where}: {value!r} will not do (wanted: a list of texts)")
    if len(value) > LIST_ITEMS_MAX or any(len(item) > LIST_TEXT_CHARS_MAX for item in value):
        limits = f"{LIST_ITEMS_MAX} texts of {LIST_TEXT_CHARS_MAX} characters at most"
        raise RefusedError(f"{where}: too long ({limits})")
    return list(value)


def _checked_table(where: str, value: Any) -> dict[str, Any]:
    """A table of plain data. The command checks its contents."""
    if not isinstance(value, Mapping):
        raise RefusedError(f"{where}: {shown(repr(value))} is no table")
    left: list[tuple[Any, int]] = [(value, 1)]
    values = 0
    while left:
        item, depth = left.pop()
        values += 1
        if values > TABLE_VALUES_MAX or (depth > TABLE_DEPTH_MAX and isinstance(item, Mapping | list | tuple)):
            raise RefusedError(f"{where}: too much ({TABLE_VALUES_MAX} values, {TABLE_DEPTH_MAX} deep at most)")
        if isinstance(item, Mapping):
            if not all(isinstance(key, str) and len(key) <= TEXT_CHARS_MAX for key in item):
                raise RefusedError(f"{where}: a key that is no text, or longer than {TEXT_CHARS_MAX} characters")
            left += [(inner, depth + 1) for inner in item.values()]
        elif isinstance(item, list | tuple):
            left += [(inner, depth + 1) for inner in item]
        elif isinstance(item, str):
            if len(item) > TEXT_CHARS_MAX:
                raise RefusedError(f"{where}: a text longer than {TEXT_CHARS_MAX} characters")
        elif (
            item is not None
            and not isinstance(item, bool)
            and (not isinstance(item, int) or not -WHOLE_MAX <= item <= WHOLE_MAX)
        ):
            raise RefusedError(f"{where}: {shown(repr(item))} is neither a whole number nor a text nor yes or no")
    return dict(value)
