"""Compiles the cores with mypyc and the machine's C compiler, and writes the manifest that `mrcfabric.cores` reads.

Owns how it is done and what is said when it cannot be: the reason goes into the manifest, and nothing fails. Each build
has a folder of its own, named by what it was made of, so that a process that runs keeps the files that it has opened.
"""

import contextlib
import importlib.metadata
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Final

from mrcfabric.cores import FOLDER, LIBRARY, MANIFEST, Manifest, digest, read_manifest
from tools.cores.modules import compiled, module_name, sources

ROOT: Final = Path(__file__).resolve().parents[2]
OPTIMIZE: Final = "-O1"
FLAGS: Final = ("-fPIC", "-fno-strict-aliasing", "-fvisibility=hidden", "-DNDEBUG", "-w")
"""Hidden: calls and data inside the library then need no table of addresses, which could be changed at load time."""
TRIAL: Final = "#include <Python.h>\nint mrcfabric_trial(void) { return PY_VERSION_HEX != 0; }\n"
GROUP: Final = LIBRARY.removesuffix("__mypyc")
KEPT: Final = "build/cores"
"""Where results of the C compiler are kept, so that compiling again takes as long as what has changed."""
_SUFFIX: Final = sysconfig.get_config_var("EXT_SUFFIX")
_LINE_MAX: Final = 200
_KEY_BYTES: Final = 16


class CannotCompileError(Exception):
    """Why there will be no compiled cores: one line."""


class Kept:
    """What the C compiler has made, by what it was made of."""

    def __init__(self, folder: Path, *besides: str) -> None:
        """`besides`: what else the results depend on, apart from commands and files."""
        self._folder = folder
        self._besides = [*besides, importlib.metadata.version("mypy"), sys.version]
        self._used: set[str] = set()

    def make(self, command: list[str], source: Path, result: Path) -> None:
        """Have the command make a result of a C file, or take the one that it made before of the same."""
        # The scratch folder has another name each time.
        flags = [word for word in command if not word.startswith(tempfile.gettempdir())]
        text = "\0".join([*self._besides, *flags, *_with_headers(source)])
        name = blake2b(text.encode(), digest_size=_KEY_BYTES).hexdigest()
        self._used.add(name)
        with contextlib.suppress(OSError):
            shutil.copyfile(self._folder / name, result)
            return
        _run([*command, str(source), "-o", str(result)])
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            fresh = self._folder / f"{name}.{os.getpid()}"
            shutil.copyfile(result, fresh)
            fresh.replace(self._folder / name)

    def forget_others(self) -> None:
        """Remove results that nothing has asked for."""
        with contextlib.suppress(OSError):
            for entry in self._folder.iterdir():
                if entry.name not in self._used:
                    entry.unlink()


def _with_headers(source: Path) -> list[str]:
    """The text of a C file and of the headers beside it that it includes, directly or not."""
    waiting, found = [source], dict[Path, str]()
    while waiting:
        path = waiting.pop()
        if path not in found and path.is_file():
            found[path] = path.read_text()
            waiting += (path.parent / name for name in re.findall(r'#include ["<]([^">]+)[">]', found[path]))
    return list(found.values())


def c_compiler() -> list[str]:
    """The command of the C compiler that made this Python, or of another one. Raises CannotCompileError."""
    wanted = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    for command in (shlex.split(wanted), ["cc"], ["gcc"], ["clang"]):
        if shutil.which(command[0]):
            return command
        if os.environ.get("CC"):
            break
    raise CannotCompileError(f"no C compiler: {wanted.split()[0]} was not found")


def check_tools() -> list[str]:
    """The command of a C compiler that works here, with mypyc beside it. Raises CannotCompileError."""
    compiler = c_compiler()
    try:
        import mypyc.build  # noqa: F401
    except ImportError:
        raise CannotCompileError("mypyc is not installed (pip install mypy)") from None
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder, "trial.c")
        trial.write_text(TRIAL)
        _run([*compiler, *FLAGS, *_includes(), "-shared", str(trial), "-o", str(trial.with_suffix(".so"))])
    return compiler


def compile_into(package: Path, root: Path = ROOT) -> Manifest:
    """Compile the cores of the tree at `root` into the folder of a package `mrcfabric`; returns what became of it.

    Does nothing if they are there already. Never raises for want of a compiler, nor when it fails.
    """
    folder = package / FOLDER
    paths = compiled()
    digests = {path.as_posix(): digest((root / path).read_bytes()) for path in sources(root, paths)}
    names = [module_name(path) for path in paths]
    build = "b" + blake2b(json.dumps([digests, names, _SUFFIX, OPTIMIZE, FLAGS]).encode(), digest_size=8).hexdigest()
    before = read_manifest(folder)
    if before is not None and not before.why and before.folder == build and (folder / build).is_dir():
        return before
    why = version = ""
    try:
        compiler = check_tools()
        version = _version(compiler)
        _build(root, paths, folder, build, compiler, Kept(root / KEPT, version))
    except CannotCompileError as error:
        why, names, digests = str(error), [], {}
    manifest = Manifest(_SUFFIX, version, build, names, digests, why)
    _write(folder, manifest)
    return manifest


def _build(root: Path, paths: list[Path], folder: Path, build: str, compiler: list[str], kept: Kept) -> None:
    with tempfile.TemporaryDirectory(prefix="mrcfabric-cores-") as scratch:
        shims, library = _to_c(root, paths, Path(scratch))
        made = Path(scratch, "made")
        made.mkdir()
        flags = [*compiler, OPTIMIZE, *FLAGS, *_includes()]
        with ThreadPoolExecutor(_processors()) as pool:
            objects = [source.with_suffix(".o") for source in library]
            list(
                pool.map(lambda job: kept.make([*flags, "-I", scratch, "-c"], *job), zip(library, objects, strict=True))
            )
            _run([*compiler, "-shared", "-s", *map(str, objects), "-o", str(made / f"{LIBRARY}{_SUFFIX}")])
            modules = [(source, made / f"{name}{_SUFFIX}") for name, source in shims]
            list(pool.map(lambda job: kept.make([*flags, "-shared", "-s"], *job), modules))
        kept.forget_others()
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder / build, ignore_errors=True)
        shutil.copytree(made, folder / build)


def _to_c(root: Path, paths: list[Path], scratch: Path) -> tuple[list[tuple[str, Path]], list[Path]]:
    """Translate; returns (module, file) of those that only hand on, and the files of the library behind them."""
    from mypyc.build import mypycify

    said = io.StringIO()
    try:
        with contextlib.chdir(root), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            made = mypycify(
                ["--config-file=pyproject.toml", "--cache-dir=" + os.devnull, *(path.as_posix() for path in paths)],
                multi_file=True, target_dir=str(scratch), group_name=GROUP,
            )  # fmt: skip
    except SystemExit as refusal:
        text = said.getvalue() or str(refusal)
        raise CannotCompileError("mypyc refuses: " + _first_error(text)) from None
    except Exception as error:
        raise CannotCompileError(f"mypyc fails: {type(error).__name__}: {_first_error(str(error))}") from None
    library = [Path(root, name) for name in made[0].sources]
    return [(one.name, Path(root, one.sources[0])) for one in made[1:]], library


def _includes() -> list[str]:
    import mypyc

    paths = sysconfig.get_paths()
    folders = dict.fromkeys((paths["include"], paths["platinclude"], str(Path(mypyc.__file__).parent / "lib-rt")))
    return [word for folder in folders for word in ("-I", folder)]


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise CannotCompileError(f"{command[0]} does not start: {error.strerror}") from None
    if done.returncode:
        raise CannotCompileError(f"{command[0]} fails: {_first_error(done.stderr) or f'exit code {done.returncode}'}")
    return done.stdout


def _first_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")[:_LINE_MAX]


def _version(compiler: list[str]) -> str:
    told = _run([compiler[0], "-dumpfullversion", "-dumpversion"]).strip()
    return f"{Path(compiler[0]).name} {told}"


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _write(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in place in one step, and remove other builds: a process that starts finds one or the other."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{MANIFEST}.new"
    fresh.write_text(json.dumps(manifest._asdict(), indent=1) + "\n")
    fresh.replace(folder / MANIFEST)
    for entry in _builds(folder):
        if entry.name != manifest.folder or manifest.why:
            shutil.rmtree(entry, ignore_errors=True)


def _builds(folder: Path) -> Iterator[Path]:
    return (entry for entry in folder.iterdir() if entry.is_dir())


def main() -> int:
    """`python -m tools.cores`: compile beside the sources, and say in one line what runs from now on."""
    compile_into(ROOT / "mrcfabric")
    told = subprocess.run(
        [sys.executable, "-c", "from mrcfabric.cores import CORES; print('cores:', CORES.line)"], cwd=ROOT, check=False
    )
    return told.returncode
