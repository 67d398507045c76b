"""A test that changes a class of the cores from outside fails also where they run as pure Python.

Compiled classes refuse such a change, or do not notice it. After an edit the sources run as pure Python, which takes
it: a test would pass at who wrote it and fail everywhere else. A test that has to do it says so: `pytest.mark.pure`.
"""

from types import ModuleType
from typing import Final

from tools.cores.modules import compiled, module_name

CORES: Final = frozenset(map(module_name, compiled()))


def changes_a_core(target: object, name: object) -> bool:
    """Whether to set this attribute changes a class of a compiled module, or hides what one has for all its objects.

    An attribute that each object has for itself may be set, and a name of a module.
    """
    if not isinstance(name, str) or isinstance(target, ModuleType):
        return False
    owner = target if isinstance(target, type) else type(target)
    if owner is target:
        return owner.__module__ in CORES
    definer = next((base for base in owner.__mro__ if name in vars(base)), None)
    if definer is None or definer.__module__ not in CORES:
        return False
    # What `__slots__` and fields leave in a class takes a value of each object; all else is the class's own.
    return not hasattr(vars(definer)[name], "__set__") or isinstance(vars(definer)[name], property)
