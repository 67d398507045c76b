"""The scenarios that a page offers: those shipped with the live map, and those in folders that the operator names.

Owns which files are offered, under which id, and whether each fits the running fabric. A file is read again when it has
changed. `orchestrator.scenario` says what a scenario means. An id is looked up in the list and never made into a path,
so a page cannot ask for any other file.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.scenario.resolve import load

BUILT_IN: Final = Path(__file__).parent / "scenarios"
FILES_MAX: Final = 64
FILE_BYTES_MAX: Final = 1 << 20


class _Read(NamedTuple):
    changed_ns: int
    entry: dict[str, Any]


class ScenarioFiles:
    """The scenarios for one fabric."""

    def __init__(self, topology: Topology, folders: Sequence[Path] = ()) -> None:
        """`folders` are searched for *.yaml, without their subfolders; the built-in scenarios come first."""
        self._topology = topology
        self._folders = (BUILT_IN, *folders)
        self._read: dict[Path, _Read] = {}

    def entries(self) -> list[dict[str, Any]]:
        """All scenarios on offer, as `messages` describes them."""
        return [self._entry(path) for path in self._files()]

    def find(self, ident: str) -> tuple[Path, str]:
        """Find a scenario's file and name by id. Raises ConfigError when there is none, or it does not fit."""
        for path in self._files():
            if _ident(path) == ident:
                entry = self._entry(path)
                if not entry["fits"]:
                    raise ConfigError(ident, "does not fit this fabric", entry["why"])
                return path, str(entry["name"])
        raise ConfigError("scenario", f"{ident!r} is not on offer")

    def _files(self) -> Iterator[Path]:
        found = (path for folder in self._folders for path in sorted(folder.glob("*.yaml")))
        yield from (path for path, _number in zip(found, range(FILES_MAX), strict=False))

    def _entry(self, path: Path) -> dict[str, Any]:
        try:
            status = path.stat()
        except OSError as error:
            return _unfit(path, error.strerror or str(error))
        known = self._read.get(path)
        if known is None or known.changed_ns != status.st_mtime_ns:
            known = _Read(status.st_mtime_ns, self._made(path, status.st_size))
            self._read[path] = known
        return known.entry

    def _made(self, path: Path, size: int) -> dict[str, Any]:
        if size > FILE_BYTES_MAX:
            return _unfit(path, "is too long to be a scenario")
        try:
            plan = load(str(path), topology=self._topology)
        except ConfigError as error:
            return _unfit(path, str(error))
        return {"id": _ident(path), "name": plan.name, "description": plan.description, "fits": True, "why": ""}


def _unfit(path: Path, why: str) -> dict[str, Any]:
    return {"id": _ident(path), "name": path.stem, "description": "", "fits": False, "why": why}


def _ident(path: Path) -> str:
    return path.name if path.parent == BUILT_IN else f"{path.parent.name}/{path.name}"
