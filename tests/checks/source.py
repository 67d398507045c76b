"""The repository as the checks see it: which files exist, their text and what it defines, each read once.

Owns what counts as source, test and text. The rules are in the test files beside it; what is let through is
in `exceptions.py` and nowhere else.
"""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mrcfabric", "nicd", "switchd", "orchestrator", "chaosmrc")
"""What is shipped; every module of these has a twin under tests/."""
PYTHON_FOLDERS = (*PACKAGES, "bench", "fuzz", "studies", "swarm", "tests", "examples", "deploy")
TEXT_FOLDERS = (*PYTHON_FOLDERS, "docs", ".ci")
TEXT_SUFFIXES = {"", ".cfg", ".css", ".html", ".js", ".json", ".lua", ".md", ".py", ".sh", ".toml", ".yaml", ".yml"}
# Made by tools or brought in from elsewhere, with their own authors' habits.
SKIPPED_FOLDERS = {"__pycache__", "vendor", "node_modules"}


class Function(NamedTuple):
    """One function or method, with where it stands."""

    where: str
    """`path:qualified.name`, as the exceptions name it."""
    line: int
    lines: int
    """Decorators not counted."""
    explained: bool
    """It has a docstring."""

    @property
    def name(self) -> str:
        return self.where.rpartition(":")[2].rpartition(".")[2]


class Outline(NamedTuple):
    """What the checks ask of a Python file."""

    explained: bool
    functions: tuple[Function, ...]
    names: tuple[tuple[int, str], ...]
    """Line and name of all that the file itself names; what it imports was named by others."""


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


def tree(path: Path) -> ast.Module:
    return ast.parse(text(path), filename=str(path))


_WITHOUT_NAMES = (ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
"""Nodes below which nothing can be named; there are more of them than of all others."""


@functools.cache
def outline(path: Path) -> Outline:
    """Kept in place of the tree: all trees are a million objects, and each search for garbage would go through them."""
    module = tree(path)
    functions: list[Function] = []
    names: list[tuple[int, str]] = []
    waiting: list[tuple[ast.AST, str]] = [(module, f"{relative(path)}:")]
    while waiting:
        node, prefix = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append((node.lineno, node.name))
            if not isinstance(node, ast.ClassDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                functions.append(Function(prefix + node.name, node.lineno, lines, bool(ast.get_docstring(node))))
            prefix += f"{node.name}."
        elif isinstance(node, ast.arg):
            names.append((node.lineno, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append((node.lineno, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.append((node.lineno, node.attr))
        for value in vars(node).values():
            children = value if type(value) is list else (value,)
            waiting += (
                (child, prefix)
                for child in children
                if isinstance(child, ast.AST) and not isinstance(child, _WITHOUT_NAMES)
            )
    return Outline(bool(ast.get_docstring(module)), tuple(sorted(functions)), tuple(sorted(names)))


@functools.cache
def modules() -> tuple[str, ...]:
    """Dotted names of every shipped module and package."""
    return tuple(sorted(_dotted(path) for path in python_files() if path.relative_to(ROOT).parts[0] in PACKAGES))


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def functions() -> Iterator[Function]:
    """Every function and method of every Python file."""
    for path in python_files():
        yield from outline(path).functions
