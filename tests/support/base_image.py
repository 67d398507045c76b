"""What an image can be built on where none can be fetched: this machine's Python and what our packages need, as a tree.

Owns the choice of files: the interpreter with its library, pip and setuptools, the packages that mrcfabric requires as
they are installed here, a shell, and the shared libraries of all that. Files are links where that is possible.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

FOLDERS: Final = ("dev", "etc", "proc", "run", "sys", "tmp", "var/tmp")
PROGRAMS: Final = ("sh", "mkdir", "chown")
BEGUN_WITH: Final = ("pip", "setuptools")
LEFT_OUT: Final = (
    "*-packages",
    "config-*",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "test",
    "tests",
    "tkinter",
    "__pycache__",
)
CONTAINERFILE: Final = """\
FROM scratch
COPY . /
ENV PATH={programs}:/usr/bin:/bin PIP_NO_INDEX=1 PIP_NO_BUILD_ISOLATION=0
"""
"""pip finds what it needs installed, and asks no index."""

_ELF: Final = b"\x7fELF"
_LIBRARY: Final = re.compile(r"(?:=> |\t)(/\S+) \(0x")


def plant(root: Path) -> str:
    """Make the tree; returns what stands in the Containerfile that makes an image of it."""
    library = Path(os.__file__).parent
    shutil.copytree(
        library, _below(root, library), symlinks=True, copy_function=_put, ignore=shutil.ignore_patterns(*LEFT_OUT)
    )
    packages = _below(root, library) / "site-packages"
    for package in _packages():
        for file in package.files or ():
            if ".." not in file.parts and "tests" not in file.parts and Path(str(file.locate())).is_file():
                _put(str(file.locate()), packages / file)
    interpreter = Path(sys.base_prefix, "bin/python3").resolve()
    _put(interpreter, _below(root, interpreter))
    python = _below(root, interpreter.parent / "python3")
    if not python.exists():
        python.symlink_to(interpreter.name)
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found is not None
        _put(Path(found).resolve(), root / "bin" / name)
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for name in ("passwd", "group"):
        (root / "etc" / name).write_text("root:x:0:0::/:/bin/sh\n" if name == "passwd" else "root:x:0:\n")
    _add_libraries(root)
    return CONTAINERFILE.format(programs=interpreter.parent)


def _below(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _put(source: str | Path, target: str | Path) -> None:
    target = Path(target)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _packages() -> Iterator[Distribution]:
    """What mrcfabric requires, and what that does."""
    waiting, seen = [*BEGUN_WITH, *_required(distribution("mrcfabric"))], set[str]()
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # for another machine, or another Python
        yield found
        waiting += _required(found)


def _required(package: Distribution) -> list[str]:
    wanted = [Requirement(text) for text in package.requires or ()]
    return [one.name for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]


def _add_libraries(root: Path) -> None:
    programs = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and _is_program(path)]
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    for name in set(_LIBRARY.findall(told)):
        if not name.startswith(str(root)):
            _put(Path(name).resolve(), _below(root, Path(name)))


def _is_program(path: Path) -> bool:
    if ".so" not in path.name and not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        return file.read(4) == _ELF
