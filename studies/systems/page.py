"""docs/SYSTEMS.md: the gates, then every row with what is wanted, what came out, and whether it held.

Owns the text around the figures. No figure of ours stands here: all come from the findings.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from studies.systems.row import Finding, Row

HEAD: Final = """# Systems beside MRC: what they must show, and what they show here

`make systems` makes this page anew: every figure under "ours" is measured by it, in virtual time, on the cores that the
daemons run. "Wanted" comes from a closed form or from the publication named, and the bounds with it; nothing is set to
what was measured. *Exact* rows hold to their tolerance; of *band* rows only order and rough size count.

`make systems` writes all rows into this page; in the repository `python -m studies.systems G1 E4` prints some of them.

The systems are the bundles that `mrcfabric systems` lists. Not every row uses one: a closed form needs the mechanism
alone, and the row says which settings it has.
"""
GATES: Final = """
## No straw men

A comparison is worth something only if every system works as published. So each one first runs alone on an empty
fabric, headers paid; two of its flows share a link; and its published profile stands beside a sweep of the one setting
that moves its results most.
"""
SIDE_BY_SIDE: Final = """
## Side by side
"""
ACCEPTANCE: Final = """
## Acceptance
"""

Results = Mapping[str, Sequence[Finding] | str]
"""Row -> what came out, or what it needs that is not there."""


def page(table: Sequence[Row], gates: Sequence[Row], rows: Sequence[Row], results: Results, stored: str = "") -> str:
    """The whole document; a row without a result keeps what an earlier page says of it."""
    sections, lines = _kept(stored)
    parts = [HEAD, _summary([*table, *gates, *rows], results, lines)]
    for head, chosen in ((SIDE_BY_SIDE, table), (GATES, gates), (ACCEPTANCE, rows)):
        parts += [head, *(section(row, results[row.id]) if row.id in results else sections[row.id] for row in chosen)]
    return "".join(parts)


def _kept(stored: str) -> tuple[dict[str, str], dict[str, str]]:
    """The sections and the lines of the summary of an earlier page, by row."""
    bodies = re.split(r"(?=\n### )", stored)[1:]
    # What follows a group's last section is the heading of the next group.
    sections = {body[5 : body.index(".")]: body.split("\n## ")[0] for body in bodies}
    lines = {
        found[1]: found[0] for found in re.finditer(r"^\| (\w+) \|.*\|$", stored.partition("\n### ")[0], re.MULTILINE)
    }
    return sections, lines


def verdict(result: Sequence[Finding] | str) -> str:
    """In a word or two."""
    if isinstance(result, str):
        return f"not run: needs {result}"
    judged = [finding for finding in result if finding.judged]
    held = sum(finding.held for finding in judged)
    if not judged:
        return "shown"
    return "held" if held == len(judged) else f"{held} of {len(judged)} held"


def section(row: Row, result: Sequence[Finding] | str) -> str:
    """One row with its findings."""
    kind = "Exact" if row.exact else "Band"
    lines = [
        f"\n### {row.id}. {row.title}\n",
        f"*{kind}; tolerance {row.tolerance}.* {_sentence(row.formula)} Source: {row.source}.\n",
        f"{_sentence(row.setup)}\n",
    ]
    if isinstance(result, str):
        return "\n".join([*lines, f"Not run: needs {result}.\n"])
    if row.layout is not None:
        return "\n".join([*lines, row.layout(result)])
    lines.append("| At | Wanted | Ours | |\n|---|---|---|---|")
    lines += [f"| {one.at} | {one.wanted} | {one.shown} | {_mark(one)} |" for one in result]
    if row.why and not all(finding.held for finding in result):
        lines.append(f"\nWhy not: {row.why}")
    return "\n".join(lines) + "\n"


def _summary(rows: Sequence[Row], results: Results, kept: Mapping[str, str]) -> str:
    lines = ["", "| Row | What | Result |", "|---|---|---|"]
    lines += [
        f"| {row.id} | {row.title} | {verdict(results[row.id])} |" if row.id in results else kept[row.id]
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _mark(finding: Finding) -> str:
    if not finding.judged:
        return ""
    return "held" if finding.held else "**not held**"


def _sentence(text: str) -> str:
    return text if text.endswith(".") else text + "."
