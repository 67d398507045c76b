"""Programs of the system that some tests run for real: tshark, Prometheus, a browser.

`system_programs.txt` names them, each with its Debian package; `.ci/run` installs from the same list. No test finds one
of them by its name alone: the PATH of the tests is the machine's without these programs. A test, or a fixture of it,
asks for what it runs with `program`, which puts it on the PATH until the end of the module. So a test that forgets to
ask fails everywhere, as it would on a machine that has none of them.

Without the program, or without root, the tests that ask are skipped, with the reason; where CI is set they fail
instead, because `.ci/run` installs all and runs as root.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

_LIST: Final = Path(__file__).with_name("system_programs.txt")
WHOLE: Final = "MRCFABRIC_TESTSWHOLE_PATH"
"""The variable that keeps the machine's own PATH for `program`, in this process and in the workers of xdist."""
_FOLDER: Final = "mrcfabric-path-"
"""The process that made it follows."""
_MISSING: Final = " is not installed"
NEEDS_ROOT: Final = "needs root"
_asked: list[Path] = []
"""The folder of what the module under test has asked for; empty outside a test process."""


def package_of() -> dict[str, str]:
    """Program -> Debian package, of every program that is kept from the PATH."""
    return dict(line.split() for line in _LIST.read_text().splitlines())


def bare_path(path: str, folder: Path) -> str:
    """`path` without the listed programs: a folder that has one of them is replaced by links to all else in it.

    `folder` takes the new folders; the order of what is found stays.
    """
    hidden = package_of()
    places: dict[Path, None] = {}
    for word in path.split(os.pathsep):
        place = Path(word)
        if not word or not place.is_dir():
            continue
        real = place.resolve()
        if not any((real / name).exists() for name in hidden):
            places[place] = None
            continue
        links = folder / "-".join(real.parts[1:])
        if not links.is_dir():
            links.mkdir(parents=True)
            for entry in real.iterdir():
                if entry.name not in hidden:
                    (links / entry.name).symlink_to(entry)
        places[links] = None
    return os.pathsep.join(str(place) for place in places)


def hide_programs() -> Path | None:
    """Take the listed programs off this process's PATH; returns the folder to remove at the end.

    None in a process whose parent has done it.
    """
    folder = None
    if WHOLE not in os.environ:
        _sweep()
        folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        os.environ[WHOLE] = os.environ["PATH"]
        os.environ["PATH"] = bare_path(os.environ["PATH"], folder)
    return folder


def _sweep() -> None:
    """Remove the folders of test processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        if not Path("/proc", folder.name.removeprefix(_FOLDER).partition("-")[0]).exists():
            shutil.rmtree(folder, ignore_errors=True)


def module_begins(folder: Path) -> None:
    """What this module asks for is put into `folder`, the first one on the PATH."""
    _asked[:] = [folder]
    os.environ["PATH"] = os.pathsep.join((str(folder), os.environ["PATH"]))


def module_ends() -> None:
    """What this module has asked for is off the PATH again."""
    os.environ["PATH"] = unasked_path()
    _asked.clear()


def unasked_path() -> str:
    """The PATH of the tests without what this module has asked for."""
    return os.environ["PATH"].removeprefix(f"{_asked[0]}{os.pathsep}")


def program(name: str) -> Path:
    """Where the program is, which other processes of this test find too from now on.

    Skips the test, or fails it in CI, when it is not there. In a process that a test has started there is no test to
    skip: LookupError, when the test itself has not asked.
    """
    if not _asked:
        found = shutil.which(name)
        if found is None:
            raise LookupError(f"{name} is not on the PATH: the test that starts this process is to ask for it first")
        return Path(found)
    found = shutil.which(name, path=os.environ.get(WHOLE))
    if found is not None:
        link = _asked[0] / name
        if not link.is_symlink():
            link.symlink_to(found)
        return Path(found)
    if os.environ.get("CI"):
        pytest.fail(f"{name}{_MISSING}; .ci/run installs what the tests run")
    pytest.skip(f"{name}{_MISSING}")


def not_tried(reasons: Iterable[str]) -> list[str]:
    """Two lines on tests that were skipped for these reasons: what was not tried, and how to try it. [] for none."""
    reasons = list(reasons)
    absent = dict.fromkeys(package_of(), 0)
    for reason in reasons:
        name = reason.removeprefix("Skipped: ").removesuffix(_MISSING)
        if reason.endswith(_MISSING):
            absent[name] = absent.get(name, 0) + 1
    unprivileged = sum(NEEDS_ROOT in reason for reason in reasons)
    counts = [f"{count} for want of {name}" for name, count in absent.items() if count]
    counts += [f"{unprivileged} that need root"] if unprivileged else []
    if not counts:
        return []
    packages = package_of()
    # All that a test may ask for next, not only the first it missed.
    whole = os.environ.get(WHOLE)
    wanted = sorted({packages[name] for name in packages if shutil.which(name, path=whole) is None})
    again = f"apt-get install --no-install-recommends {' '.join(wanted)} && make test" if wanted else "make test"
    return [f"Not tried here: {', '.join(counts)}.", f"To try them, as root: {again}"]
