"""docs/SPEC_MAP.md: from each cited section to the code that follows it and the tests that show it.

Run as a module it writes the page. Gathers citations in comments and docstrings of the shipped packages, the markers
`@pytest.mark.spec(document, section)` of the tests, and the choices of `spec_choices` with the defaults of their
settings. Names no lines, so that only a change of what is cited, shown or chosen makes the page stale.
"""

import ast
import functools
import importlib
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import MISSING, fields
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, TypeAlias

from nicd.core.settings import DERIVED, NicSettings
from tests.checks import source
from tests.checks.choice import Choice
from tests.checks.source import PACKAGES, ROOT, relative
from tests.checks.spec_choices import CHOICES
from tests.checks.spec_sections import SECTIONS

PAGE = ROOT / "docs/SPEC_MAP.md"
_MARK: Final = "pytest.mark.spec"

Section: TypeAlias = tuple[str, str]
"""(document, number), the number empty where a document is cited as a whole."""

DOCUMENTS: Final = ("MRC 1.0", "UEC", "IBTA", "arXiv", "RFC")
_NUMBER: Final = r"(?:(?:sections? |annex )?([A-Z]?[0-9]+(?:\.[0-9]+)*|CMS|PDS)(?![0-9\-]))?"
_CITATION: Final = re.compile(rf"\b(MRC 1\.0|UEC(?: 1\.0)?|IBTA|arXiv [0-9.]+[0-9]|RFC [0-9]+)(?:'s)?,?\s*{_NUMBER}")

_HEAD: Final = """\
# From specification to code to test

Made by `make compliance` from the citations in the code and the markers in the tests; do not edit it by hand.

The text of the OCP specification was not at hand when this was written: formats and rules were taken from public
descriptions derived from it, the MRC paper, public API headers and the documents it builds on. Numbers 7.x and 11.x of
MRC 1.0 are the specification's as those descriptions quote them; the ones marked *outline* are our own numbers for a
subject whose section is not public. `mrcfabric/wire` follows layouts on which at least two descriptions agree, or has a
setting.
"""
_CHOICES_HEAD: Final = """\
## What is open, and what we do

Settings of a NIC go under `nic:` of a topology file, those of a switch under `switch:`, the wire's options under
`wire:` and the code points under `dscp:`; the topology's own stand at its top. Defaults in base RTT are derived
from the topology's unloaded round trip.
"""


def _texts(path: Path) -> Iterator[str]:
    """Comments and docstrings of a file."""
    for token in tokenize.generate_tokens(io.StringIO(source.text(path)).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
            yield token.string


def citations(text: str) -> Iterator[Section]:
    """Every section that a text cites."""
    for match in _CITATION.finditer(text):
        yield match.group(1).replace("UEC 1.0", "UEC"), match.group(2) or ""


@functools.cache
def cited() -> dict[Section, list[str]]:
    """Section -> the shipped files that cite it. A document cited as a whole counts only by its number."""
    found: dict[Section, set[str]] = defaultdict(set)
    for path in source.python_files():
        # Tokens take long, and most files cite nothing.
        if path.relative_to(ROOT).parts[0] in PACKAGES and any(citations(source.text(path))):
            for text in _texts(path):
                for document, number in citations(text):
                    # "MRC 1.0 leaves it open" names no section; a whole RFC is one.
                    if number or document.startswith("RFC"):
                        found[document, number].add(relative(path))
    return {section: sorted(files) for section, files in found.items()}


@functools.cache
def shown() -> dict[Section, dict[str, list[str]]]:
    """Section -> test file -> the tests marked with it."""
    found: dict[Section, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in source.python_files():
        if relative(path).startswith("tests/") and _MARK in source.text(path):
            for node in ast.walk(source.tree(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    for section in _marks(node):
                        found[section][relative(path)].append(node.name)
    return found


def _marks(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[Section]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == _MARK:
            document, number = (ast.literal_eval(argument) for argument in decorator.args)
            yield document, number


def default(setting: str) -> Any:
    """The default of `module:Class.field`, as people write it."""
    module, _, name = setting.partition(":")
    kind, _, field_name = name.partition(".")
    owner = getattr(importlib.import_module(module), kind)
    field = next((field for field in fields(owner) if field.name == field_name), None)
    assert field is not None, f"{setting}: no such setting; correct tests/checks/spec_choices.py"
    assert field.default is not MISSING, f"{setting} has no default"
    if owner is NicSettings and field_name in DERIVED:
        return f"{DERIVED[field_name]:g} base RTT"
    value = field.default
    if isinstance(value, IntEnum):
        return value.name
    return f"{value:#x}" if field_name in ("p_key", "usid_block") else value


def home(setting: str) -> str:
    """The module in which the field of `module:Class.field` is written down, a base class's perhaps."""
    module, _, name = setting.partition(":")
    kind, _, field_name = name.partition(".")
    owners = getattr(importlib.import_module(module), kind).__mro__
    return next(owner.__module__ for owner in owners if field_name in vars(owner).get("__annotations__", {}))


def _order(section: Section) -> tuple[Any, ...]:
    document, number = section
    rank = next(rank for rank, name in enumerate(DOCUMENTS) if document.startswith(name))
    return rank, len(document), document, [int(part) if part.isdigit() else 0 for part in number.split(".")], number


def _row(section: Section, files: list[str], tests: dict[str, list[str]]) -> str:
    code = "<br>".join(f"`{name}`" for name in files) or "-"
    cells = (f"`{path}`: {', '.join(f'`{name}`' for name in names)}" for path, names in sorted(tests.items()))
    shows = "<br>".join(cells)
    return f"| {' '.join(section).strip()} | {SECTIONS.get(section, '')} | {code} | {shows or '-'} |"


def _settings(choice: Choice) -> str:
    return "<br>".join(f"`{setting.split(':')[1]}` = `{default(setting)}`" for setting in choice.settings) or "-"


def _files(choice: Choice) -> str:
    paths = dict.fromkeys(home(setting).replace(".", "/") + ".py" for setting in choice.settings)
    return "<br>".join(f"`{path}`" for path in paths) or "-"


def page() -> str:
    """The whole page."""
    code, tests = cited(), shown()
    lines = [_HEAD, "## Sections", "", "| Section | About | Code | Tests |", "|---|---|---|---|"]
    sections = sorted({*code, *tests}, key=_order)
    lines += [_row(section, code.get(section, []), tests.get(section, {})) for section in sections]
    lines += ["", _CHOICES_HEAD]
    for title, choices in CHOICES.items():
        lines += [f"### {title}", "", "| Subject | Why a choice | What we do | Setting = default | File |"]
        lines.append("|---|---|---|---|---|")
        lines += [f"| {row.subject} | {row.kind} | {row.done} | {_settings(row)} | {_files(row)} |" for row in choices]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {relative(PAGE)}\n")
