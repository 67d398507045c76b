"""Makes a wheel of a distribution that is installed here, from the code that runs here, without network or build tool.

The same code gives the same bytes, so that a digest shows whether a host has it already.
"""

import base64
import hashlib
import importlib.machinery
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from mrcfabric.cores import FOLDER, built_files
from mrcfabric.errors import ConfigError

_CARRIED: Final = ("METADATA", "entry_points.txt", "top_level.txt")
"""The metadata files to copy. The others say how the distribution came here."""
_WHEEL: Final = "Wheel-Version: 1.0\nGenerator: mrcfabric\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_MADE: Final = {"__pycache__", FOLDER}
"""Folders of what was made of the code here. Of the second what runs here is carried, see `_modules`."""
_CORES_IN: Final = "mrcfabric"
_LEVEL: Final = 1
"""Of compression: level 6 takes four times as long for a tenth less."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o644
_DIGEST_CHARS: Final = 16


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel file."""

    name: str
    """`mrcfabric-0.1.0-py3-none-any.whl`."""
    version: str
    content: bytes
    digest: str
    """Of its content, short enough for a file name."""
    requirements: tuple[str, ...]
    """Other distributions it needs, without extras: `msgpack>=1.1,<2`."""


def wheel_of(distribution: str) -> Wheel:
    """Make the wheel of an installed distribution of pure Python. Raises ConfigError when it is not installed."""
    found = _found(distribution)
    files = dict(_modules(found))
    info = f"{distribution}-{found.version}.dist-info"
    for name in _CARRIED:
        # A source tree has an egg-info folder, where this file has another name.
        text = found.read_text(name) or (found.read_text("PKG-INFO") if name == "METADATA" else None)
        if text is not None:
            files[f"{info}/{name}"] = text.encode()
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    digest = _digest(files)
    record = "".join(f"{name},sha256={_base64(files[name])},{len(files[name])}\n" for name in sorted(files))
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    name = f"{distribution}-{found.version}-py3-none-any.whl"
    return Wheel(name, found.version, _zip(files), digest, _needs(found))


def requirements_of(distribution: str) -> tuple[str, ...]:
    """The distributions that an installed one needs, without extras. Raises ConfigError when it is not installed."""
    return _needs(_found(distribution))


def packages_of(distribution: str) -> tuple[str, ...]:
    """The names of its packages, as they are imported. Raises ConfigError when it is not installed."""
    return _packages(_found(distribution))


def _found(distribution: str) -> metadata.Distribution:
    try:
        return metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        raise ConfigError(distribution, "is not installed here", f"pip install {distribution}") from None


def _needs(found: metadata.Distribution) -> tuple[str, ...]:
    return tuple(sorted(text for text in found.requires or () if "extra ==" not in text))


def _packages(found: metadata.Distribution) -> tuple[str, ...]:
    return tuple((found.read_text("top_level.txt") or "").split())


def _modules(found: metadata.Distribution) -> Iterator[tuple[str, bytes]]:
    """Every file of its packages, from the folders they are imported from: the same code will run there."""
    for package in _packages(found):
        # setuptools has a finder of its own for pip, which warns where distutils was imported before.
        spec = importlib.machinery.PathFinder.find_spec(package) or importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            continue
        folder = Path(next(iter(spec.submodule_search_locations)))
        for path in folder.rglob("*"):
            inside = path.relative_to(folder)
            if path.is_file() and not _MADE & set(inside.parts):
                yield f"{package}/{inside.as_posix()}", path.read_bytes()
        if package == _CORES_IN:
            # A machine that cannot load them runs the sources.
            for path in built_files(folder):
                yield f"{package}/{path.relative_to(folder).as_posix()}", path.read_bytes()


def _digest(files: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}\0{len(files[name])}\0".encode() + files[name])
    return total.hexdigest()[:_DIGEST_CHARS]


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _zip(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = _MODE << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, _LEVEL)
    return made.getvalue()
