"""Which cores run: the modules compiled from these sources, or the sources themselves as pure Python.

Owns the choice. It is made once in a process, when `mrcfabric` is imported, for all compiled modules together: a
process runs either every one of them compiled or none. Compiled modules lie apart from their sources (`FOLDER`), so
that Python finds a source unless the finder below stands in front of it. It does so only if the digest of every source
that went into the compiled modules is what it was then. An edited source therefore runs, as pure Python, and with it
all others.

`tools/cores` compiles, and writes the manifest that is read here.
"""

import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from pathlib import Path
from typing import Any, Final, NamedTuple

VARIABLE: Final = "MRCFABRIC_CORES"
PYTHON: Final = "python"
COMPILED: Final = "compiled"
FORCED: Final = f"{VARIABLE}={PYTHON}"
"""The detail where pure Python was asked for."""
FOLDER: Final = "_cores"
"""Inside the package `mrcfabric`: the manifest, and a folder per build with its modules."""
MANIFEST: Final = "cores.json"
LIBRARY: Final = "mrcfabric_cores__mypyc"
"""The extension module behind all others, which only hand on what it has."""
REMEDY: Final = "`make cores` compiles them"
_EXIT_CONFIG: Final = 2
_DIGEST_BYTES: Final = 16


class Cores(NamedTuple):
    """What runs in this process, and why."""

    run: str
    """PYTHON or COMPILED."""
    detail: str
    """How many modules and by which compiler, or why none."""

    @property
    def line(self) -> str:
        """For people."""
        return f"compiled ({self.detail})" if self.run == COMPILED else f"pure Python ({self.detail})"

    def record(self) -> dict[str, str]:
        """For reports and snapshots."""
        return {"run": self.run, "detail": self.detail}


class Manifest(NamedTuple):
    """What `tools/cores` has made of which sources."""

    abi: str
    """The suffix of extension modules of the Python that it was made for."""
    compiler: str
    folder: str
    """Where the modules of this build are, inside `FOLDER`; named by what they were made of."""
    modules: Sequence[str]
    sources: Mapping[str, str]
    """Path from the root -> digest, of compiled modules and of those that they take constants and types from."""
    why: str
    """Why there are no compiled modules; empty: there are."""


class _Finder:
    """Finds the compiled modules, in front of the finders of sources."""

    def __init__(self, folder: Path, modules: Sequence[str], abi: str) -> None:
        self._files = {name: str(folder / f"{name}{abi}") for name in modules}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The compiled module of this name; None: it has none. Raises ImportError when its file has gone."""
        file = self._files.get(name)
        if file is None:
            return None
        if not os.path.exists(file):
            raise ImportError(f"the cores were compiled anew while this process ran: start it again ({file} has gone)")
        spec = ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
        spec.has_location = True
        return spec


def digest(content: bytes) -> str:
    """Of one source."""
    return blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in this folder; None: there is none, or none that this version can read."""
    try:
        raw: Any = json.loads((folder / MANIFEST).read_bytes())
        return Manifest(**raw)
    except (OSError, ValueError, TypeError):
        return None


def stale_source(root: Path, sources: Mapping[str, str]) -> str | None:
    """The first source that is no longer what it was when it was compiled; None: all are."""
    for name, expected in sources.items():
        try:
            content = (root / name).read_bytes()
        except OSError:
            return name
        if digest(content) != expected:
            return name
    return None


def judge(root: Path, asked: str) -> tuple[Cores, Manifest | None]:
    """What is to run, and the manifest if that is the compiled modules.

    `root`: where the packages are; `asked`: the value of the variable. Raises ValueError when it is none, or when
    compiled modules are asked for and there are none to run.
    """
    if asked not in ("", PYTHON, COMPILED):
        raise ValueError(f"{VARIABLE}: {asked!r} is not known (one of {PYTHON}, {COMPILED}, or not set)")
    if asked == PYTHON:
        return Cores(PYTHON, FORCED), None
    manifest = read_manifest(root / "mrcfabric" / FOLDER)
    why = _lacking(root, manifest)
    if manifest is None or why:
        if asked == COMPILED:
            raise ValueError(f"{VARIABLE}: there are no compiled cores to run: {why}")
        return Cores(PYTHON, why), None
    return Cores(COMPILED, f"{len(manifest.modules)} modules, {manifest.compiler}"), manifest


def _lacking(root: Path, manifest: Manifest | None) -> str:
    """Why the compiled modules cannot run; empty: they can."""
    if manifest is None:
        return f"nothing is compiled; {REMEDY}"
    if manifest.why:
        return manifest.why
    if manifest.abi not in EXTENSION_SUFFIXES:
        return f"compiled for another Python ({manifest.abi}); {REMEDY}"
    if not (root / "mrcfabric" / FOLDER / manifest.folder).is_dir():
        return f"the compiled modules have gone; {REMEDY}"
    stale = stale_source(root, manifest.sources)
    return f"{stale} has changed since it was compiled; {REMEDY}" if stale else ""


def built_files(package: Path) -> list[Path]:
    """The files that stand beside a copy of this package for the copy to run what runs here; none for pure Python.

    `package`: the folder `mrcfabric`. Where the copy cannot load them it runs as pure Python, and says why.
    """
    folder = package / FOLDER
    manifest = read_manifest(folder) if CORES.run == COMPILED else None
    return [] if manifest is None else [folder / MANIFEST, *sorted((folder / manifest.folder).iterdir())]


def _choose() -> Cores:
    root = Path(__file__).parents[1]
    try:
        cores, manifest = judge(root, os.environ.get(VARIABLE, ""))
    except ValueError as error:
        print(error, file=sys.stderr)
        raise SystemExit(_EXIT_CONFIG) from None
    if manifest is None:
        return cores
    folder = root / "mrcfabric" / FOLDER / manifest.folder
    finder = _Finder(folder, [*manifest.modules, LIBRARY], manifest.abi)
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module(LIBRARY)
    except ImportError as error:
        sys.meta_path.remove(finder)
        return Cores(PYTHON, f"the compiled modules cannot be loaded here: {error}")
    return cores


CORES: Final = _choose()
"""What runs in this process."""
