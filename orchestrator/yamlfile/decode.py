"""Converts plain data of a YAML file into typed records, and says in words what a wrong value should have been.

Owns how the kind of an entry decides its type, and the wording of errors. msgspec finds the mistake. The words come
from the same type that msgspec checked against.
"""

import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from mrcfabric.errors import ConfigError, misfit
from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint
from orchestrator.yamlfile.document import Spot
from orchestrator.yamlfile.spelling import WANTED

T = TypeVar("T")

_WAY = re.compile(r" - at `\$(.*)`$", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_UNKNOWN = re.compile(r"^Object contains unknown field `(.*?)`", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(.*?)`")
_ABSENT = (type(None), msgspec.UnsetType)


def decode(spot: Spot, data: Any, shape: type[T]) -> T:
    """Convert data to the type `shape`. Raises ConfigError with the line, what is wrong and what is wanted."""
    try:
        return msgspec.convert(data, shape, strict=True)
    except msgspec.ValidationError as error:
        raise _complaint(spot, data, shape, str(error)) from None


def by_kind(spot: Spot, data: Any, key: str, shapes: Mapping[str, type[Struct]], what: str) -> Any:
    """Convert an entry to the type that its `key` names. Raises ConfigError."""
    if not isinstance(data, dict):
        raise spot.wrong("is no table", f"as {{name: ..., {key}: ...}}")
    kind = data.get(key)
    if kind is None:
        raise spot.wrong(f"does not say which {key}", "there are " + ", ".join(shapes))
    if isinstance(kind, bool):
        raise _misfit(spot / key, kind, f"a {what}")
    if not isinstance(kind, str) or kind not in shapes:
        raise (spot / key).wrong(f"no {what} is called {shown(str(kind))}", nearest_hint(str(kind), shapes))
    return decode(spot, data, shapes[kind])


def _complaint(spot: Spot, data: Any, shape: Any, message: str) -> ConfigError:
    way = _WAY.search(message)
    value = data
    for name, number in _STEP.findall(way[1] if way else ""):
        step: str | int = int(number) if number else name
        spot, shape, value = spot / step, _inside(shape, step), value[step]
    if found := _UNKNOWN.search(message):
        return (spot / found[1]).wrong("no such key here", nearest_hint(found[1], _keys(shape)))
    if found := _MISSING.search(message):
        return spot.wrong(f"{found[1]} is missing", f"{found[1]}: {wanted(_inside(shape, found[1]))}")
    if isinstance(value, bool):
        return _misfit(spot, value, wanted(shape))
    if isinstance(value, dict | list):
        kind, words = "table" if isinstance(value, dict) else "list", wanted(shape)
        # A table where a table is wanted has too few entries, or too many.
        what = f"has {len(value)} entries" if f"a {kind}" in words else f"is a {kind}"
        return spot.wrong(what, f"wanted: {words}")
    return spot.wrong(f"{shown(str(value))} will not do", f"wanted: {wanted(shape)}")


def _misfit(spot: Spot, value: object, wanted_words: str) -> ConfigError:
    error = misfit("", value, wanted_words)
    return spot.wrong(error.what, error.hint)


def _choices(shape: Any) -> list[Any]:
    """The members of a union, with their annotations, but without those that stand for an absent value."""
    if get_origin(shape) in (Union, types.UnionType):
        return [inner for one in get_args(shape) for inner in _choices(one) if one not in _ABSENT]
    if get_origin(shape) is Annotated and get_origin(shape.__origin__) in (Union, types.UnionType):
        return _choices(shape.__origin__)
    return [shape]


def _bare(shape: Any) -> Any:
    return shape.__origin__ if get_origin(shape) is Annotated else shape


def _struct(shape: Any) -> type[Struct] | None:
    for one in map(_bare, _choices(shape)):
        if isinstance(one, type) and issubclass(one, Struct):
            return one
    return None


def _keys(shape: Any) -> list[str]:
    struct = _struct(shape)
    return [row.encode_name for row in msgspec.structs.fields(struct)] if struct else []


def _inside(shape: Any, step: str | int) -> Any:
    """The type of the value at a key or a position."""
    if isinstance(step, str):
        struct = _struct(shape)
        rows = msgspec.structs.fields(struct) if struct else ()
        return next((row.type for row in rows if row.encode_name == step), Any)
    for one in map(_bare, _choices(shape)):
        if get_origin(one) is list:
            return get_args(one)[0]
    return Any


def wanted(shape: Any) -> str:
    """A type in words."""
    words = [_word(one) for one in _choices(shape)]
    return " or ".join(dict.fromkeys(word for word in words if word)) or "something else"


def _word(shape: Any) -> str:
    metas = shape.__metadata__ if get_origin(shape) is Annotated else ()
    bare = _bare(shape)
    if get_origin(bare) is Annotated or len(_choices(bare)) > 1:
        return wanted(bare)
    for meta in metas:
        if isinstance(meta, Meta) and meta.pattern in WANTED:
            return WANTED[meta.pattern]
    if get_origin(bare) is Literal:
        return "" if get_args(bare) == (0,) else "one of " + ", ".join(map(str, get_args(bare)))
    if get_origin(bare) is list:
        inner = get_args(bare)[0]
        # Entries whose own key tells their type are read one by one, and are tables all of them.
        return f"a list of {'tables' if inner is Any else wanted(inner)}" + _bounds(metas)
    if get_origin(bare) is dict:
        return "a table" + _bounds(metas)
    if isinstance(bare, type) and issubclass(bare, Struct):
        return "a table of " + ", ".join(_keys(bare))
    known = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    return known.get(bare, "something else") + _bounds(metas)


def _bounds(metas: tuple[Any, ...]) -> str:
    for meta in metas:
        if isinstance(meta, Meta):
            least = next((one for one in (meta.ge, meta.gt, meta.min_length) if one is not None), None)
            most = next((one for one in (meta.le, meta.lt, meta.max_length) if one is not None), None)
            if least is not None and most is not None:
                return f" ({least} to {most})"
            if least is not None or most is not None:
                return f" (at least {least})" if least is not None else f" (at most {most})"
    return ""
