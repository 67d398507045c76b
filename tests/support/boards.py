"""What tests ask of a board: the names and variables in its expressions, and the schema that Grafana takes."""

import json
import re
from functools import cache
from typing import Any

from jsonschema import Draft7Validator

from tests.checks.source import ROOT
from tools.grafana.board import Board

BUILT_IN = frozenset({"ALERTS", "scrape_duration_seconds", "up"})
"""Series that Prometheus makes itself."""
_STRINGS = re.compile(r'"[^"]*"')
_SELECTED = re.compile(r"\b([a-zA-Z_:][a-zA-Z0-9_:]*)\{")


def expressions(board: Board) -> list[str]:
    """Those of all panels."""
    return [query.expr for panel in board.panels() for query in panel.queries]


def annotated(board: Board) -> list[str]:
    """Those of its annotations."""
    return [one["target"]["expr"] for one in board.json()["annotations"]["list"] if "target" in one]


def metrics(expression: str) -> set[str]:
    """The series that it names: every one has a selector, for the fabric at least."""
    return set(_SELECTED.findall(_STRINGS.sub('""', expression)))


def variables(expression: str) -> set[str]:
    """The variables in its selectors and windows."""
    return set(re.findall(r"\$([a-z_]+)", expression))


def expanded(expression: str, **values: str) -> str:
    """With variables as Grafana puts them in."""
    for name, value in values.items():
        expression = expression.replace(f"${name}", value)
    return expression


@cache
def _validator() -> Draft7Validator:
    return Draft7Validator(json.loads((ROOT / "tests/vectors/grafana/board.schema.json").read_text("utf-8")))


def mistakes(board: dict[str, Any]) -> list[str]:
    """What Grafana's types have against it; for a panel, against one of its own kind."""
    found = []
    for error in _validator().iter_errors(board):
        inside = [one for one in error.context or [] if "type" not in list(one.path)[:1]] or [error]
        found += [f"{list(error.absolute_path)} {list(one.path)}: {one.message[:200]}" for one in inside[:4]]
    return found
