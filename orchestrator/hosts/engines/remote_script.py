"""What an engine asks and does on a host itself: a script that stands alone, sent there and run by its Python.

It uses the standard library alone. The order is its only argument, in JSON. Its answer is the line of output that
begins with MARK. It does not judge what it finds: `orchestrator.hosts.engines.host_facts` does.

`look` says what the host has. `settle` makes what was copied there a set of modules that the next launch finds again.
"""

import compileall
import contextlib
import errno
import getpass
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any

MARK = "mrcfabric-there "
KEPT = 4
"""How many sets of code, and of packages, a host keeps beside those in use."""
HELD = "held"
"""A file in each set. Every program that uses the set holds it open."""
DRAFT_S = 3600.0
"""A draft of this age belongs to a launch that has failed."""
_CLAUSE = re.compile(r"(>=|<=|==|<|>)\s*([0-9]+(?:\.[0-9]+)*)")
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*([^;]*)")


def look(order: dict[str, Any]) -> dict[str, Any]:
    """What this host has for an order.

    `order` has `run_dir` and `ports`, of [kind, address, port]. With `code`, a digest, it also has `requirements`,
    `packages`, a digest of these for the name of a folder, and `wheels`, names of files. With `modules`, names of
    packages, it also has `requirements`.
    """
    folder = os.path.abspath(os.path.expanduser(order["run_dir"]))
    found = {
        "python": list(sys.version_info[:3]),
        "user": _user(),
        "run_dir": folder,
        "unwritable": _unwritable(folder),
        "ports": [_taken(*port) for port in order["ports"]],
    }
    if "modules" in order:
        found |= {"stamp": stamp(order["modules"]), "missing": _missing(order)}
    if "code" in order:
        code = os.path.join(folder, "code", order["code"])
        kind = f"{order['packages']}-{sys.implementation.cache_tag}-{platform.machine()}"
        packages = os.path.join(folder, "packages", kind)
        missing = _missing(order)
        found |= {
            "installed": _version("mrcfabric"),
            "missing": missing,
            "pip": _has_pip(),
            "code": [code, _used(code)],
            "packages": [packages, _used(packages)],
            "wheels": _digests(os.path.join(folder, "wheelhouse"), order["wheels"] if missing else []),
        }
    return found


def _has_pip() -> bool:
    """Whether pip is installed. Other finders than that of the path, as setuptools adds one, would import for it."""
    return importlib.machinery.PathFinder.find_spec("pip") is not None


def settle(order: dict[str, Any]) -> dict[str, Any]:
    """Make a draft a set. `order`: `draft`, a folder of modules or a zip of them; `target`, the folder of the set.

    The answer `failed` says why it failed, or "". The draft is gone in any case.
    """
    draft, target = order["draft"], order["target"]
    try:
        if os.path.isfile(draft):
            archive, draft = draft, f"{draft}.open"
            with zipfile.ZipFile(archive) as opened:
                os.unlink(archive)
                opened.extractall(draft)
        compileall.compile_dir(draft, quiet=2, stripdir=draft, prependdir=target)
        with open(os.path.join(draft, HELD), "w"):
            pass
        os.rename(draft, target)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        # Another launch was first, and has made the same set.
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            return {"failed": error.strerror or str(error)}
    _forget_old(os.path.dirname(target), target)
    return {"failed": ""}


def stamp(packages: Iterable[str]) -> str:
    """A digest of the installed files of packages. Two hosts with one file system have the same."""
    total = hashlib.sha256()
    for package in sorted(packages):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path, folders, names in os.walk(folder):
                folders[:] = sorted(name for name in folders if name != "__pycache__")
                for name in sorted(names):
                    about = os.stat(os.path.join(path, name))
                    total.update(f"{path}/{name} {about.st_size} {about.st_mtime_ns}\n".encode())
    return total.hexdigest()


def _missing(order: dict[str, Any]) -> list[str]:
    """The requirements that this Python does not meet."""
    return [text for text in order["requirements"] if not satisfied(text, _version)]


def satisfied(text: str, version: Callable[[str], str | None]) -> bool:
    """Whether the version that is installed meets `name>=1,<2`. A text that cannot be read counts as not met."""
    parts = _REQUIREMENT.fullmatch(text)
    installed = version(parts[1]) if parts else None
    if parts is None or installed is None:
        return False
    have = _release(installed)
    for clause in filter(None, (one.strip() for one in parts[2].split(","))):
        relation = _CLAUSE.fullmatch(clause)
        if relation is None:
            return False
        want = _release(relation[2])
        width = max(len(have), len(want))
        one, other = have + (0,) * (width - len(have)), want + (0,) * (width - len(want))
        met = {">=": one >= other, "<=": one <= other, "==": one == other, "<": one < other, ">": one > other}
        if not met[relation[1]]:
            return False
    return True


def _release(text: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _unwritable(folder: str) -> str:
    """Why nothing can be written into a folder; "" when it can."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _taken(kind: str, address: str, port: int) -> str:
    """Why a port cannot be had; "" when it can."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as tried:
        if kind == "tcp":
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((address, port))
            if kind == "tcp":
                tried.listen(1)
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, str(error))
    return ""


def _used(folder: str) -> bool:
    """Whether the set is there. If so, it becomes the last to be removed as old."""
    held = os.path.join(folder, HELD)
    if not os.path.exists(held):
        return False
    with contextlib.suppress(OSError):  # it is another user's, who removes it himself
        os.utime(held)
    return True


def _digests(folder: str, names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of every named file that exists."""
    found = {}
    for name in names:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            continue
    return found


def _forget_old(folder: str, newest: str) -> None:
    """Remove sets that no process holds open, except the KEPT that were used last."""
    held = _open_files()

    def used_s(path: str) -> float:
        try:
            return os.stat(os.path.join(path, HELD)).st_mtime
        except OSError:
            return 0.0

    sets = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if not name.startswith("."):
            sets.append(path)
        else:
            _sweep(path)
    idle = [path for path in sets if path != newest and os.path.join(path, HELD) not in held]
    for path in sorted(idle, key=used_s)[: max(0, len(idle) - KEPT)]:
        shutil.rmtree(path, ignore_errors=True)


def _sweep(draft: str) -> None:
    """Remove a draft that is older than DRAFT_S."""
    with contextlib.suppress(FileNotFoundError):  # a launch on another host with the same home has removed it
        if time.time() - os.lstat(draft).st_mtime <= DRAFT_S:
            return
        if os.path.isdir(draft):
            shutil.rmtree(draft, ignore_errors=True)
        else:
            os.unlink(draft)


def _open_files() -> set[str]:
    """All files that processes of this user have open."""
    found = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        folder = f"/proc/{process}/fd"
        try:
            for number in os.listdir(folder):
                found.add(os.readlink(os.path.join(folder, number)))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    _order = json.loads(sys.argv[1])
    print("\n" + MARK + json.dumps({"look": look, "settle": settle}[_order.pop("do")](_order)), flush=True)
