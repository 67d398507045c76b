"""The pieces of a page."""

from orchestrator.report.frame import details, legend, note, page, pairs, section, shown, table, tiles
from tests.support.html import parsed


def test_whatever_comes_in_is_text() -> None:
    nasty = "</script><script>alert(1)</script>"
    whole = page(
        nasty,
        nasty,
        "pass",
        [
            tiles([(nasty, nasty)]),
            section(nasty, note(nasty), pairs({nasty: nasty}), table([nasty], [["1"]])),
            legend([("c0", nasty)]),
            details(nasty, nasty),
        ],
        {},
    )
    assert "<script>alert" not in whole
    assert not parsed(whole).open


def test_a_table_marks_its_columns_of_text() -> None:
    drawn = table(["name", "count"], [["a", "1"]], text_columns=[0])
    assert drawn.count('class="text"') == 2
    assert "<td>1</td>" in drawn


def test_figures_for_people() -> None:
    assert [shown(None), shown(1234.5), shown(0.25, 2)] == ["-", "1,234", "0.25"]
    assert "1,234" in pairs({"count": 1234})
    assert "True" in pairs({"valid": True})
