"""The page says what was wanted, what came out, and whether it held."""

from dataclasses import replace

from studies.systems.page import page, section, verdict
from studies.systems.row import Row, near, seen

ROW = Row("X1", "A title", "a form", "a source", "2 %", "A set-up", (1,), lambda point: (), why="it rains")
GOOD, BAD = near("here", 1.0, 1.0, 0.02), near("there", 1.0, 1.5, 0.02)


def test_a_verdict_counts_what_is_judged() -> None:
    assert verdict([GOOD, GOOD]) == "held"
    assert verdict([GOOD, BAD, seen("x", 9)]) == "1 of 2 held"
    assert verdict([seen("x", 9)]) == "shown"
    assert verdict("PFC") == "not run: needs PFC"


def test_a_row_shows_its_figures_and_its_reason_only_where_it_fails() -> None:
    good, bad = section(ROW, [GOOD]), section(ROW, [GOOD, BAD])
    assert "| here | 1.000 | 1.000 | held |" in good
    assert "it rains" not in good
    assert "| there | 1.000 | 1.500 | **not held** |" in bad
    assert "it rains" in bad
    assert "Not run: needs PFC." in section(ROW, "PFC")


def test_the_page_begins_with_the_verdicts() -> None:
    text = page((), (), (ROW,), {"X1": [GOOD]})
    assert "| X1 | A title | held |" in text
    assert text.index("| X1 |") < text.index("### X1.")


def test_a_row_with_a_layout_of_its_own_shows_that() -> None:
    drawn = replace(ROW, layout=lambda found: f"{len(found)} in all\n")
    assert "1 in all" in section(drawn, [GOOD])
    assert "| At |" not in section(drawn, [GOOD])
