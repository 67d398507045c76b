"""What a part of a NIC takes in this Python process: objects and bytes, by walking what it refers to.

Owns the walk. `nicd.core.mrc.footprint` says what the same state takes in hardware. Not for the packet path: a walk
costs a microsecond per object.
"""

from collections import deque
from collections.abc import Iterator
from sys import getsizeof
from typing import Any, Final, NamedTuple

from mrcfabric.attributes import attribute_names

# Nothing below these is state: they are shared, or worth their own size only.
_LEAVES: Final = (int, str, bytes, bytearray, memoryview, float, bool, type(None), type, range)
_SHARED: Final = (int, str, bool, type(None), type)


class ProcessSize(NamedTuple):
    """What a walk has found."""

    objects: int
    size_bytes: int
    """Of CPython's objects, their own headers included; memory behind a memoryview is not counted."""


def reachable(root: Any, package: str, stop: tuple[Any, ...] = ()) -> ProcessSize:
    """Everything that `root` refers to, itself included, each object once; small numbers and names count nothing.

    Objects of classes outside `package` (a dotted prefix) and Python's own containers are leaves; so is everything in
    `stop`, which counts nothing.
    """
    seen = {id(entry) for entry in stop}
    waiting = [root]
    objects = size_bytes = 0
    while waiting:
        entry = waiting.pop()
        if id(entry) in seen:
            continue
        seen.add(id(entry))
        if isinstance(entry, _SHARED) and not _large(entry):
            continue
        objects += 1
        size_bytes += getsizeof(entry)
        waiting.extend(_parts(entry, package))
    return ProcessSize(objects, size_bytes)


def _large(entry: Any) -> bool:
    """A number that is a bitmap."""
    return type(entry) is int and entry.bit_length() > 64


def _parts(entry: Any, package: str) -> Iterator[Any]:
    """What one object refers to."""
    if isinstance(entry, _LEAVES):
        return
    if isinstance(entry, dict):
        yield from entry.keys()
        yield from entry.values()
    elif isinstance(entry, list | tuple | set | frozenset | deque):
        yield from entry
    elif type(entry).__module__.startswith(package):
        for name in attribute_names(type(entry)):
            part = getattr(entry, name, None)
            if part is not None:
                yield part
        attributes = getattr(entry, "__dict__", None)
        if attributes is not None:
            yield attributes
