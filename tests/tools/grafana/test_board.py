"""Boards: panels on the grid without overlap, the variables asked for, faults as annotations, links that keep both."""

import json
from itertools import combinations
from typing import Any

from tools.grafana.board import Board, Row, link_to
from tools.grafana.panels import figure, lines
from tools.grafana.query import Query

LINE = lines("l", "q?", Query("a{}", "a"))
SMALL = figure("f", "q?", "a{}")
BOARD = Board("u", "t", "d", [Row("one", [SMALL] * 9), Row("two", [LINE] * 3), Row("three", [LINE], folded=True)])


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    a, b = one["gridPos"], other["gridPos"]
    return all(a[at] < b[at] + b[size] and b[at] < a[at] + a[size] for at, size in (("x", "w"), ("y", "h")))


def test_panels_stand_beside_each_other() -> None:
    panels = BOARD.json()["panels"]
    assert not [pair for pair in combinations(panels, 2) if overlap(*pair)]
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    assert [panel["gridPos"]["y"] for panel in panels if panel["type"] == "row"] == [0, 9, 26]


def test_every_panel_has_a_number_of_its_own() -> None:
    panels = BOARD.json()["panels"]
    numbers = [panel["id"] for panel in panels] + [panel["id"] for row in panels for panel in row.get("panels", ())]
    assert sorted(numbers) == list(range(1, 17))


def test_a_folded_row_holds_its_panels() -> None:
    last = BOARD.json()["panels"][-1]
    assert (last["collapsed"], len(last["panels"])) == (True, 1)


def test_variables() -> None:
    def names(board: Board) -> list[str]:
        return [one["name"] for one in board.json()["templating"]["list"]]

    assert names(BOARD) == ["datasource", "fabric", "plane"]
    assert names(Board("u", "t", "d", BOARD.rows, nodes="mrc_nic_windows", planes=False)) == [
        "datasource",
        "fabric",
        "node",
    ]
    switches = Board("u", "t", "d", BOARD.rows, nodes="mrc_switch_forwarding").json()["templating"]["list"][-1]
    assert 'plane=~"$plane"' in switches["query"]["query"], "switches of the chosen planes only"


def test_faults_are_annotations() -> None:
    listed = BOARD.json()["annotations"]["list"]
    assert [one["name"] for one in listed] == ["Annotations & Alerts", "Faults", "Dead nodes", "Alerts"]


def test_links_keep_fabric_time_and_choice() -> None:
    (siblings,) = BOARD.json()["links"]
    assert siblings["includeVars"]
    assert siblings["keepTime"]
    assert link_to("u", "t", "node")["url"].startswith("/d/u?${datasource:queryparam}&${fabric:queryparam}&var-node=")
    assert "${__data.fields.plane}" in link_to("u", "t", "plane", row=True)["url"]


def test_the_file_is_the_json() -> None:
    assert json.loads(BOARD.text()) == BOARD.json()
