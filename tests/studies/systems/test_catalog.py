"""Rows have names of their own, points, and something to hold."""

import re

from studies.systems.__main__ import DOCUMENT
from studies.systems.catalog import GATES, ROWS, TABLE


def test_rows_are_told_apart() -> None:
    names = [row.id for row in (*TABLE, *GATES, *ROWS)]
    assert len(set(names)) == len(names)
    assert all(row.points for row in (*TABLE, *GATES, *ROWS))


def test_every_row_says_where_it_comes_from() -> None:
    for row in ROWS:
        assert row.formula
        assert row.source
        assert row.setup


def test_the_stored_page_has_every_row_and_no_other() -> None:
    stored = re.findall(r"^### (\w+)\.", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert stored == [row.id for row in (*TABLE, *GATES, *ROWS)]
