"""The files of `deploy/prometheus`, and the tables of docs/MONITORING.md made from the same rules.

Owns the paths and the form of a row. `python -m tools.prometheus --write` writes them, and a test checks that
they are up to date.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from orchestrator.prometheus import configuration
from orchestrator.prometheus.alerts import ALERTS
from orchestrator.prometheus.configuration import SHIPPED_PACE, SHIPPED_TARGETS
from orchestrator.prometheus.recording import RECORDS
from tools.prometheus.rule_tests import RULES_TEST, rule_tests

FOLDER: Final = Path("deploy/prometheus")
PAGE: Final = Path("docs/MONITORING.md")
HEAD: Final = "# Written by `python -m tools.prometheus --write`; change the rules there.\n"

_MARKED = re.compile(r"(<!-- table: ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def files(root: Path) -> dict[Path, str]:
    """Path -> text of every file made from the rules; `root`: the repository, whose page has the tables."""
    made = configuration.files(SHIPPED_PACE, SHIPPED_TARGETS)
    made[RULES_TEST] = configuration.text(rule_tests())
    found = {root / FOLDER / name: HEAD + text for name, text in made.items()}
    found[root / PAGE] = filled((root / PAGE).read_text(encoding="utf-8"))
    return found


def filled(page: str) -> str:
    """A page with the present content of every marked table."""
    return _MARKED.sub(lambda match: f"{match[1]}{_TABLES[match[2]]()}{match[3]}", page)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _records() -> str:
    rows = [(f"`{one.name}`", one.unit, one.meaning) for records in RECORDS.values() for one in records]
    return _table(("Series", "Unit", "Meaning"), rows)


def _alerts() -> str:
    rows = [
        (f"`{one.name}`", one.severity, SHIPPED_PACE.hold(one.hold), one.meaning, one.runbook)
        for alerts in ALERTS.values()
        for one in alerts
    ]
    return _table(("Alert", "Severity", "For", "What is the case", "What to do"), rows)


_TABLES: Final[dict[str, Callable[[], str]]] = {"records": _records, "alerts": _alerts}
