"""Memory of a core, generically: no container anywhere inside grows beyond what its owner's knobs allow.

Walks a core's objects by their slots and attributes and measures every list, dict, set and deque, whatever its name,
so that a container of tomorrow is measured too. Bounds of known ones are given by name; all others share one.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from mrcfabric.attributes import attribute_names
from mrcfabric.units import Instant
from swarm.invariant import InvariantError

NODES_MAX: Final = 200_000
"""Objects looked at in one walk, against a core that refers to the whole world."""
_LEAVES: Final = (int, float, str, bytes, bytearray, memoryview, bool, type(None), type)
_SKIPPED: Final = frozenset({"config", "settings", "memory", "_peek", "_destination", "destination"})


def containers(root: object) -> Iterator[tuple[str, int]]:
    """(class.attribute, length) of every container reachable from `root`; containers of containers by their owner."""
    stack: list[tuple[str, Any]] = [("", root)]
    known = {id(root)}
    count = 0
    while stack and count < NODES_MAX:
        name, thing = stack.pop()
        count += 1
        inner: list[tuple[str, Any]] = []
        if isinstance(thing, dict | list | set | deque | tuple):
            if not isinstance(thing, tuple):
                yield name, len(thing)
            values = thing.values() if isinstance(thing, dict) else thing
            inner = [(name, value) for value in values]
        elif type(thing).__module__.partition(".")[0] in ("nicd", "switchd", "mrcfabric", "swarm"):
            inner = [(f"{type(thing).__name__}.{field}", value) for field, value in _fields(thing)]
        for key, value in inner:
            if not isinstance(value, _LEAVES) and id(value) not in known:
                known.add(id(value))
                stack.append((key, value))


def _fields(thing: object) -> Iterator[tuple[str, Any]]:
    for name in attribute_names(type(thing)):
        if name not in _SKIPPED and hasattr(thing, name):
            yield name, getattr(thing, name)
    for name, value in getattr(thing, "__dict__", {}).items():
        if name not in _SKIPPED:
            yield name, value


def largest(root: object) -> dict[str, int]:
    """The largest length of each container."""
    found: dict[str, int] = {}
    for name, size in containers(root):
        if size > found.get(name, -1):
            found[name] = size
    return found


def check(name: str, at_ns: Instant, root: object, bounds: dict[str, int], general: int) -> None:
    """Raises InvariantError when a container is longer than its bound, or than `general` when none is given."""
    for container, size in largest(root).items():
        most = bounds.get(container, general)
        if size > most:
            raise InvariantError("bounds", name, at_ns, f"{container} holds {size}, {most} may be")
