"""The repository as the checks see it: which files exist, their text and their syntax trees, each read once.

Owns what counts as source, test and text. The rules are in the test files beside it; what is let through is
in `exceptions.py` and nowhere else.
"""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mrcfabric", "nicd", "switchd", "orchestrator", "chaosmrc")
"""What is shipped; every module of these has a twin under tests/."""
PYTHON_FOLDERS = (*PACKAGES, "bench", "fuzz", "studies", "swarm", "tests", "examples", "deploy")
TEXT_FOLDERS = (*PYTHON_FOLDERS, "docs", ".ci")
TEXT_SUFFIXES = {"", ".cfg", ".css", ".html", ".js", ".json", ".lua", ".md", ".py", ".sh", ".toml", ".yaml", ".yml"}
# Made by tools or brought in from elsewhere, with their own authors' habits.
SKIPPED_FOLDERS = {"__pycache__", "vendor", "node_modules"}


@dataclass(frozen=True)
class Function:
    """One function or method, with where it stands."""

    where: str
    """`path:qualified.name`, as the exceptions name it."""
    lines: int


def relative(path: Path) -> str:
    """The path as the exceptions and messages name it."""
    return path.relative_to(ROOT).as_posix()


def _files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            if entry.name not in SKIPPED_FOLDERS:
                yield from _files(entry)
        else:
            yield entry


@functools.cache
def python_files() -> tuple[Path, ...]:
    """Every Python file of the project."""
    folders = (ROOT / name for name in PYTHON_FOLDERS)
    return tuple(path for folder in folders if folder.is_dir() for path in _files(folder) if path.suffix == ".py")


@functools.cache
def text_files() -> tuple[Path, ...]:
    """Every file that people read: the Python files, the texts and the configuration at the top."""
    # In a linked working tree `.git` is a file, and it names the machine's folders.
    ours = (path for path in sorted(ROOT.iterdir()) if path.is_file() and path.name != ".git")
    top = (path for path in ours if not path.name.startswith("bench."))
    folders = (ROOT / name for name in TEXT_FOLDERS)
    below = (path for folder in folders if folder.is_dir() for path in _files(folder))
    return tuple(path for path in (*top, *below) if path.suffix in TEXT_SUFFIXES)


@functools.cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path), filename=str(path))


@functools.cache
def modules() -> tuple[str, ...]:
    """Dotted names of every shipped module and package."""
    return tuple(sorted(_dotted(path) for path in python_files() if path.relative_to(ROOT).parts[0] in PACKAGES))


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def functions() -> tuple[Function, ...]:
    """Every function and method of every Python file, decorators not counted."""
    return tuple(found for path in python_files() for found in _functions(relative(path), tree(path), ""))


def _functions(path: str, node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                assert child.end_lineno is not None
                yield Function(f"{path}:{name}", child.end_lineno - child.lineno + 1)
            yield from _functions(path, child, f"{name}.")
        elif isinstance(child, ast.If | ast.Try | ast.With):
            yield from _functions(path, child, prefix)
