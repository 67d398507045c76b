"""Stored results: layout, rounding, tables."""

from studies.results import Results, cell, differences, markdown, plain, rounded
from studies.study import Column

SHARE = Column("share", lambda trial, outcome: 0.0, 3)
COUNT = Column("count", lambda trial, outcome: 0.0)


def example() -> Results:
    rows = {"a": {"share": [0.5, None], "count": [3.0, 4.0]}, "b": {"share": [0.25, 0.75], "count": [0.0, 0.0]}}
    return Results("example", 2, rows, {"a": [1, 2, 3]})


def test_a_file_says_all_and_has_a_line_per_cell() -> None:
    text = example().text()
    assert Results.parse(text) == example()
    assert '   "share": [0.5, null],\n' in text
    assert Results.parse(Results("empty", 1).text()) == Results("empty", 1)


def test_a_changed_figure_is_a_changed_line() -> None:
    changed = example()
    changed.rows["b"]["count"] = [0.0, 1.0]
    assert differences(example().text(), changed.text()) == ['- "count": [0.0, 0.0]\n+ "count": [0.0, 1.0]']
    assert not differences(example().text(), example().text())
    assert "lines became" in differences("", example().text())[0]


def test_values_are_rounded_before_they_are_stored() -> None:
    assert rounded(SHARE, 0.12345) == 0.123
    assert rounded(COUNT, 2.0) == 2.0
    assert rounded(SHARE, None) is None


def test_a_cell_shows_the_middle_and_the_ends() -> None:
    assert cell(SHARE, [0.5, 0.5]) == "0.500"
    assert cell(SHARE, [0.5, 0.7, 0.6]) == "0.600 (0.500..0.700)"
    assert cell(COUNT, [4.0, None]) == "4, never 1x"
    assert cell(COUNT, [None, None]) == "never"


def test_tables() -> None:
    table = [["", "share"], ["one", "0.5"], ["another", "12.5"]]
    assert plain(table).splitlines() == ["         share", "-" * 14, "one        0.5", "another   12.5"]
    assert markdown(table).splitlines()[:2] == ["|  | share |", "|---|--:|"]
