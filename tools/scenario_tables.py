"""The tables of docs/SCENARIOS.md, made from the catalogues: workloads, kinds of fault, measures.

Owns the form of a row. A table is in the page between two marks, `<!-- table: NAME -->` and `<!-- end -->`;
`python -m tools.scenario_tables docs/SCENARIOS.md` writes the tables, and a test checks that they are up to date.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from nicd.programs.kind import Figure, TraceFigure
from orchestrator.faults.kinds import KINDS
from orchestrator.measures.drop_reasons import DROP_REASONS
from orchestrator.measures.measures import MEASURES
from orchestrator.scenario.model import KINDS_OF_WORK
from orchestrator.yamlfile.spelling import spelled, told

_MARKED = re.compile(r"(<!-- table: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """A page with the present content of every marked table."""
    return _MARKED.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", page)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _value(name: str, value: Any) -> str:
    """A default as a user would write it."""
    unit = name.rpartition("_")[2]
    if isinstance(value, bool):
        return str(value).lower()
    if unit == "ppm":
        return f"{value / 10_000:g}%"
    if unit == "ns":
        return f"{value / 1000:g}us" if value else "0"
    if unit == "bytes" and value:
        for scale, word in ((1 << 20, "MiB"), (1 << 10, "KiB")):
            if value % scale == 0:
                return f"{value // scale}{word}"
    return str(value)


def _figure(name: str, default: Any, meaning: str, *, required: bool) -> str:
    tail = " (needed)" if required else "" if default is None else f" ({_value(name, default)})"
    return f"`{spelled(name)}`{tail}: {told(meaning)}"


def _workload_figure(name: str, figure: Figure | TraceFigure, *, required: bool) -> str:
    meaning = figure.meaning
    if isinstance(figure, Figure) and figure.choices:
        meaning += " One of " + ", ".join(figure.choices) + "."
    if isinstance(figure, TraceFigure):
        meaning = "A list of `{from, to, bytes, at}`, or a CSV file with these headings."
    return _figure(name, figure.default, meaning, required=required)


def workloads() -> str:
    """Kinds of workload, one per row."""
    rows = []
    for name, kind in KINDS_OF_WORK.items():
        figures = [_workload_figure(key, row, required=key in kind.required) for key, row in kind.figures.items()]
        rows.append((f"`{name}`", kind.meaning, "<br>".join(figures)))
    return _table(("`kind`", "What the ranks do", "Keys (default)"), rows)


def faults() -> str:
    """Kinds of fault, one per row."""
    rows = []
    for name, kind in KINDS.items():
        figures = [_figure(key, row.default, row.meaning, required=row.required) for key, row in kind.figures.items()]
        rows.append((f"`{name}`", kind.target.value, kind.meaning, "<br>".join(figures)))
    return _table(("`fault`", "Of a", "Meaning", "Keys (default)"), rows)


def measures() -> str:
    """Measures, one per row."""
    rows = []
    for name, row in MEASURES.items():
        unit = f"share of {row.relative_default}" if row.relative_default else str(row.unit)
        of = ", ".join(str(one) for one in row.of) + (" (needed)" if row.of_needed else "")
        if row.labels:
            of += ": " + ", ".join(row.labels)
        others = [str(one) for one in row.relative if one != row.relative_default]
        relative = f" Also relative to {', '.join(others)}." if others else ""
        rows.append((f"`{name}`", unit, row.meaning + relative, of, "yes" if row.binned else "", row.reduce))
    return _table(("`measure`", "Unit", "Meaning", "`of`", "`bin`", "`reduce`"), rows)


def drops() -> str:
    """Reasons of drops, one per row."""
    return _table(("Reason", "What it means"), [(f"`{reason}`", meaning) for reason, meaning in DROP_REASONS.items()])


TABLES: Final[dict[str, Callable[[], str]]] = {
    "workloads": workloads,
    "faults": faults,
    "measures": measures,
    "drops": drops,
}

if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as before:
            text = filled(before.read())
        with open(path, "w", encoding="utf-8") as after:
            after.write(text)
