"""Systems that ship with the program: each a bundle of settings in a YAML file of its own, found by its name.

Owns where these files are, and which file a name or a path means. `mrcfabric.topology_file` reads them and puts their
settings beneath those of a topology.
"""

from pathlib import Path
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.nearest import nearest

SHIPPED: Final = Path(__file__).parent / "systems"
_ENDINGS: Final = (".yaml", ".yml")


def names() -> list[str]:
    """The systems that ship, in order of their names."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def is_path(system: str) -> bool:
    """Whether a text means a file of the reader's own, not a system that ships."""
    return "/" in system or system.endswith(_ENDINGS)


def file_of(system: str, where: str) -> Path:
    """The file of a system, given by name or by path; `where` is the place that names it. Raises ConfigError."""
    if is_path(system):
        return Path(system)
    known = names()
    if system not in known:
        found = nearest(system, known)
        near = f"nearest is {found}; " if found else ""
        hint = f"{near}there are {', '.join(known)}, or the path of a file with a / in it"
        raise ConfigError(where, f"no system is called {shown(system)}", hint)
    return SHIPPED / f"{system}.yaml"
