"""The build backend of pyproject.toml (PEP 517): setuptools, and the compiled cores in wheels.

Owns what a build needs beyond setuptools: mypy where there is a C compiler, nothing where there is none. An editable
installation needs nothing either: `make cores` compiles beside the sources.
"""

from typing import Any, Final

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - a backend is the module with these names

from tools.cores.compile import CannotCompileError, c_compiler

MYPY: Final = "mypy>=1.18,<3"


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What setuptools asks for, and mypy if it can be of use."""
    needed: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    try:
        c_compiler()
    except CannotCompileError:
        return needed
    return [*needed, MYPY]
