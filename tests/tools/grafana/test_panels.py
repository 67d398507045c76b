"""Panels: each kind is what Grafana takes, and shows the queries it was given."""

import pytest

from tests.support.boards import mistakes
from tools.grafana import look
from tools.grafana.board import Board, Row
from tools.grafana.panels import Column, Panel, bars, figure, heat, lines, spans, table
from tools.grafana.query import Query

A, B = Query("a{}", "first"), Query("b{}", "second")
WORDS = ((0, "no", look.BAD), (1, "yes", look.GOOD))
TABLE = table("t", "q?", Column("Who", "node"), Column("How much", expr="a{}", unit="bytes"),
              Column("Of what", expr="b{}", limits=look.NONE_IS_GOOD), order="How much")  # fmt: skip
KINDS = (
    lines("t", "q?", A, B, unit="bps", limits=look.NONE_IS_GOOD, highest=1.0),
    lines("t", "q?", A, stacked=True, overrides=look.plane_overrides(), link={"title": "x", "url": "/d/x"}),
    figure("t", "q?", "a{}", meanings=WORDS, decimals=0),
    figure("t", "q?", "a{}", curve=True, legend="{{version}}"),
    spans("t", "q?", A, meanings=WORDS),
    heat("t", "q?", "a{}", "s"),
    bars("t", "q?", A, unit="percentunit", highest=1),
    TABLE,
    table("t", "q?", Column("Who", "node"), Column("Up", expr="a{}"), order="Who", rising=True),
)


@pytest.mark.parametrize("panel", KINDS, ids=lambda panel: panel.kind)
def test_grafana_takes_it(panel: Panel) -> None:
    assert not mistakes(Board("u", "t", "d", [Row("r", [panel])]).json())


def test_a_wrong_option_is_noticed() -> None:
    board = Board("u", "t", "d", [Row("r", [lines("t", "q?", A)])]).json()
    board["panels"][1]["options"]["legendary"] = True
    assert mistakes(board)
    board = Board("u", "t", "d", [Row("r", [lines("t", "q?", A)])]).json()
    board["panels"][1]["fieldConfig"]["defaults"]["custom"]["drawStyle"] = "crayon"
    assert mistakes(board)


def test_queries_are_named_in_order() -> None:
    found = lines("t", "q?", A, B).json(7, 12, 3)
    assert [(target["refId"], target["expr"]) for target in found["targets"]] == [("A", "a{}"), ("B", "b{}")]
    assert found["gridPos"] == {"x": 12, "y": 3, "w": 12, "h": 8}
    assert found["id"] == 7


def test_single_lines_have_colours_of_their_own() -> None:
    assert len({str(one) for one in lines("t", "q?", A, B).overrides}) == 2
    assert not lines("t", "q?", A, Query("b{}", "{{plane}}")).overrides


def test_a_table_shows_its_columns_and_no_others() -> None:
    merge, organize = TABLE.transformations
    assert merge["id"] == "merge"
    assert organize["options"]["renameByName"] == {"node": "Who", "Value #A": "How much", "Value #B": "Of what"}
    assert organize["options"]["indexByName"] == {"node": 0, "Value #A": 1, "Value #B": 2}
    assert TABLE.json(1, 0, 0)["targets"][0]["instant"] is True
