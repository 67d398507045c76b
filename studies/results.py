"""Results as stored: one JSON file per study, and their text.

Owns the layout of the files and the tables made from them. A file has one line per variant and column, so that a
changed figure is a changed line; the values are rounded to the column's digits before they are stored.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from studies.outcome import median
from studies.study import Column, Study, Values

FOLDER = Path(__file__).resolve().parent / "tables"
NEVER = "never"


@dataclass(slots=True)
class Results:
    """The rows of one study over its seeds."""

    study: str
    seeds: int
    rows: dict[str, dict[str, Values]] = field(default_factory=dict)
    timelines: dict[str, list[int]] = field(default_factory=dict)
    """Variant -> bytes placed per sample, first seed."""

    def text(self) -> str:
        """The file."""
        lines = ["{", f' "study": {json.dumps(self.study)},', f' "seeds": {self.seeds},', ' "rows": {']
        lines += _table(self.rows, "  ")
        lines += [" },", ' "timelines": {']
        lines += [f"  {json.dumps(name)}: {json.dumps(steps)}," for name, steps in self.timelines.items()]
        if self.timelines:
            lines[-1] = lines[-1][:-1]
        return "\n".join([*lines, " }", "}", ""])

    @classmethod
    def parse(cls, text: str) -> "Results":
        raw = json.loads(text)
        return cls(raw["study"], raw["seeds"], raw["rows"], raw["timelines"])


def _table(rows: dict[str, dict[str, Values]], indent: str) -> list[str]:
    lines = []
    for variant, cells in rows.items():
        lines.append(f"{indent}{json.dumps(variant)}: {{")
        lines += [f"{indent} {json.dumps(name)}: {json.dumps(values)}," for name, values in cells.items()]
        lines[-1] = lines[-1][:-1]
        lines.append(f"{indent}}},")
    if rows:
        lines[-1] = lines[-1][:-1]
    return lines


def path_of(study: str, folder: Path = FOLDER) -> Path:
    """Where the results of a study are kept."""
    return folder / f"{study}.json"


def stored(study: str, folder: Path = FOLDER) -> Results:
    """The results as they were last written. FileNotFoundError when they never were."""
    return Results.parse(path_of(study, folder).read_text(encoding="utf-8"))


def rounded(column: Column, value: float | None) -> float | None:
    """A value as it is stored."""
    if value is None:
        return None
    return round(value, column.digits) if column.digits else float(round(value))


def cell(column: Column, values: Values) -> str:
    """`median (lowest..highest)`, or the one value that all seeds have."""
    known = [value for value in values if value is not None]
    if not known:
        return NEVER
    shown = f"{median(known):.{column.digits}f}"
    low, high = f"{min(known):.{column.digits}f}", f"{max(known):.{column.digits}f}"
    if low != high:
        shown += f" ({low}..{high})"
    if len(known) < len(values):
        shown += f", {NEVER} {len(values) - len(known)}x"
    return shown


def heading(column: Column) -> str:
    """The column's name with its unit."""
    return f"{column.name}, {column.unit}" if column.unit else column.name


def grid(study: Study, results: Results) -> list[list[str]]:
    """Heading and rows as text."""
    table = [["", *(heading(column) for column in study.columns)]]
    for variant, cells in results.rows.items():
        table.append([variant, *(cell(column, cells[heading(column)]) for column in study.columns)])
    return table


def plain(table: list[list[str]]) -> str:
    """A table for the terminal: first column to the left, the others to the right."""
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    lines = []
    for row in table:
        cells = [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines) + "\n"


def markdown(table: list[list[str]]) -> str:
    """The same for a document."""
    lines = [f"| {' | '.join(row)} |" for row in table]
    lines.insert(1, f"|---{'|--:' * (len(table[0]) - 1)}|")
    return "\n".join(lines) + "\n"


def differences(old: str, new: str) -> list[str]:
    """Lines of two stored files that are not the same, as a reader of a diff would see them."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) != len(after):
        return [f"{len(before)} lines became {len(after)}"]
    return [f"- {was.strip()}\n+ {now.strip()}" for was, now in zip(before, after, strict=True) if was != now]


def record(results: Results) -> dict[str, Any]:
    """As plain data."""
    return {"study": results.study, "seeds": results.seeds, "rows": results.rows}
